// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"strings"
	"testing"
)

func TestParseOwners(t *testing.T) {
	const aliases = "aliases:\n  leads: [lea, Leo]\n  all: [leads, ann]\n  loop: [loop]\n  a: [b]\n  b: [a]\n"
	for name, c := range map[string]struct {
		owners, aliases string
		in, out         string
	}{
		"approvers and reviewers": {
			"approvers: [ann]\nreviewers: [rob]\nlabels: [area/ci]\noptions: {no_parent_owners: true}", "", "ann rob ANN",
			"eve an annn area/ci",
		},
		"the filter of all files": {
			"filters:\n  '.*':\n    approvers: [ann]\n    reviewers: [rob]\n  '\\.go$':\n    approvers: [gus]\n", "", "ann rob",
			"gus",
		},
		"an unknown filter": {"filters:\n  '*':\n    approvers: [gus]\n", "", "", "gus"},
		"lists and filters": {"approvers: [ann]\nfilters: {'.*': {approvers: [gus]}}", "", "ann", "gus"},
		"aliases": {
			"approvers: [leads]\nreviewers: [Leads, rob]", aliases, "lea leo rob", "leads ann",
		},
		"aliases that differ in case": {
			"approvers: [leads]", "aliases: {LEADS: [a], Leads: [b], LeadS: [c], leadS: [d], lEADS: [e], leads: [lea]}", "lea",
			"a b c d e",
		},
		"an alias in an alias is nobody's":       {"approvers: [all]", aliases, "ann", "lea leads all"},
		"aliases that loop":                      {"approvers: [loop, a]\nreviewers: [b]", aliases, "", "loop a b"},
		"an alias that nobody names":             {"approvers: [ann]", aliases, "ann", "lea"},
		"nobody":                                 {"", "", "", "ann nil null ''"},
		"empty names":                            {"approvers: ['', ' ', '@']", "", "", "@"},
		"as Git services show them":              {"approvers: ['@ann']", "", "ann", "@ann"},
		"an OWNERS that names what an alias has": {"approvers: [leads]", "aliases: {}", "leads", "lea"},
	} {
		t.Run(name, func(t *testing.T) {
			people, err := Parse([]byte(c.owners), []byte(c.aliases))
			if err != nil {
				t.Fatal(err)
			}
			for _, user := range strings.Fields(c.in) {
				if !people.Has(user) {
					t.Errorf("%s is not in it", user)
				}
			}
			for _, user := range append(strings.Fields(c.out), "") {
				if people.Has(user) {
					t.Errorf("%s is in it", user)
				}
			}
			if people.Any() != (c.in != "") {
				t.Errorf("anybody: %t", people.Any())
			}
		})
	}
}

// A file that cannot be parsed grants nothing, and costs little time.
func TestParseRefusesInvalidOwners(t *testing.T) {
	good := "approvers: [ann]"
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'j'; c++ {
		p := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+p+",", 9) + "*" + p + "]\n"
	}
	for name, c := range map[string]struct{ owners, aliases, says string }{
		"no YAML":                   {"approvers: [", "", "OWNERS is not YAML"},
		"a list":                    {"- ann\n- bob", "", "OWNERS is not YAML"},
		"another type":              {"approvers: ann", "", "OWNERS is not YAML"},
		"objects":                   {"approvers: [{name: ann}]", "", "OWNERS is not YAML"},
		"no text":                   {"\x00\x01\xff", "", "OWNERS is not YAML"},
		"a name of digits":          {"approvers: [ann, 12345]", "", "names of digits need quotes"},
		"a name like an octal":      {"reviewers: [0123]", "", "names of digits need quotes"},
		"digits in an alias":        {good, "aliases: {leads: [12345]}", "OWNERS_ALIASES has a number"},
		"a word that is a boolean":  {good, "aliases: {leads: [yes]}", "words like yes"},
		"an explosion":              {bomb + "approvers: *j", "", "OWNERS is not YAML"},
		"deep":                      {"approvers: " + strings.Repeat("[", 60_000), "", "OWNERS is not YAML"},
		"too large":                 {good + "\n#" + strings.Repeat("x", MaxBytes), "", "OWNERS is larger than 64 KiB"},
		"aliases that are broken":   {good, "aliases: [", "OWNERS_ALIASES is not YAML"},
		"aliases of another type":   {good, "aliases: {leads: lea}", "OWNERS_ALIASES is not YAML"},
		"aliases that are too many": {good, "#" + strings.Repeat("x", MaxBytes), "OWNERS_ALIASES is larger"},
	} {
		t.Run(name, func(t *testing.T) {
			people, err := Parse([]byte(c.owners), []byte(c.aliases))
			if err == nil || !strings.Contains(err.Error(), c.says) || people.Any() {
				t.Errorf("%v, %v, want an error that says %q and nobody", people, err, c.says)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("approvers: [ann, leads]", "aliases: {leads: [lea]}")
	f.Add("filters: {'.*': {approvers: [ann]}}", "")
	f.Add("a: &a [*a]\napprovers: *a", "aliases: {a: [a]}")
	f.Fuzz(func(t *testing.T, file, aliases string) {
		people, err := Parse([]byte(file), []byte(aliases))
		if err != nil && people.Any() || people.Has("") {
			t.Errorf("%v, %v", people, err)
		}
	})
}
