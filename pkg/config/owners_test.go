// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestURLOwners(t *testing.T) {
	for _, c := range []struct {
		value, url string
		want       []string
	}{
		{"", "https://github.com/acme/app", nil},
		{"{}", "https://github.com/acme/app", nil},
		{"team-a: [https://github.com/acme/*]", "https://github.com/acme/app", []string{"team-a"}},
		{"team-a: [https://github.com/acme/*]", "https://github.com/acme-evil/app", nil},
		{"team-a: ['https://github.com/acme/team-*-infra']", "https://github.com/acme/team-a-infra", []string{"team-a"}},
		{"team-a: ['https://github.com/acme/team-*-infra']", "https://github.com/acme/team-infra", nil},
		{"team-a: ['https://git.corp/acme/*/app']", "https://git.corp/acme/app", nil},
		{"team-a: [HTTPS://GitHub.com/Acme/app]", "https://github.com/acme/app", []string{"team-a"}},
		{"team-b:\n- https://github.com/acme/*\nteam-a:\n- https://git.corp/x\n- https://github.com/*/app\n",
			"https://github.com/acme/app", []string{"team-a", "team-b"}},
	} {
		got, err := New(map[string]string{keyURLOwners: c.value})
		if err != nil || got.Owners.Broken != "" || got.Owners.Asked != (c.value != "") {
			t.Errorf("%q: %+v, %v", c.value, got.Owners, err)
		}
		if diff := cmp.Diff(c.want, got.Owners.Listed(c.url)); diff != "" {
			t.Errorf("%q, %s:\n%s", c.value, c.url, diff)
		}
	}
}

// A value that cannot be read denies, also one that comes after a good one: what it should restrict
// is not known.
func TestURLOwnersThatCannotBeReadDeny(t *testing.T) {
	for _, value := range []string{"team-a", "- team-a", "team-a: https://github.com/acme/*",
		"team-a: [github.com/acme/*]", "team-a: ['https://[']", "team-a: ['https://*.corp.example/*']",
		"team-a: ['https://github.com*']", "team-a: ['https://']", "Team_A: [https://github.com/*]",
		"a: [https://github.com/acme/*]\na: [https://github.com/other/*]",
		"team-a: [https://github.com/acme/*]\nteam-b: [oops]"} {
		good, err := New(map[string]string{keyURLOwners: "team-a: [https://github.com/acme/*]"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := parse(map[string]string{keyURLOwners: value}, good)
		if err == nil || !strings.Contains(err.Error(), keyURLOwners) {
			t.Errorf("%q: the error is %v", value, err)
		}
		if !got.Owners.Asked || got.Owners.Broken == "" || got.Owners.Listed("https://github.com/acme/app") != nil {
			t.Errorf("%q is read as %+v", value, got.Owners)
		}
	}
}
