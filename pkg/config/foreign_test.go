// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

var update = flag.Bool("update", false, "write the table of docs/migration.md")

// lines returns the lines of a file that are no comments.
func lines(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(string(data)), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "#")
	})
}

func TestEveryKeyOfPaCHasATreatment(t *testing.T) {
	want := slices.Concat(lines(t, "testdata/pac-keys.txt"), lines(t, "testdata/pac-keys-later.txt"))
	slices.Sort(want)
	var got []string
	for _, key := range PaCKeys() {
		got = append(got, key.Name)
		if (key.Instead == "") != (key.Treatment == pacv1alpha1.Served) {
			t.Errorf("%s is %s, and instead: %q", key.Name, key.Treatment, key.Instead)
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-PaC +ours):\n%s", diff)
	}
	for name, want := range map[string]pacv1alpha1.Treatment{
		"catalog-1-url": pacv1alpha1.Served, "catalog-12-type": pacv1alpha1.Unserved, "catalog-x-url": "", keyServeNamespaces: "",
	} {
		if key, known := PaCKey(name); key.Treatment != want || known != (want != "") {
			t.Errorf("%s: %+v, %t, want %q", name, key, known, want)
		}
	}
}

// Some value of a served key changes the configuration or is refused. No value of another key does.
func TestServedKeysAreRead(t *testing.T) {
	for _, key := range PaCKeys() {
		read := false
		for _, value := range []string{"x", "true", "false", "7", "https://example.com"} {
			c, err := New(map[string]string{key.Name: value})
			read = read || err != nil || !reflect.DeepEqual(c, Default())
		}
		if read != (key.Treatment == pacv1alpha1.Served) {
			t.Errorf("%s is %s; a value has an effect: %t", key.Name, key.Treatment, read)
		}
	}
}

// A ConfigMap that was copied from PaC's release names nothing: only changed values do.
func TestIgnoredKeysAreNamed(t *testing.T) {
	released := map[string]string{
		"hub-catalog-type":                     "artifacthub",
		"bitbucket-cloud-check-source-ip":      "true",
		"bitbucket-cloud-additional-source-ip": "",
		"auto-configure-new-github-repo":       "false",
		"secret-github-app-token-scoped":       "true",
		"enable-api-retry":                     "true",
		"tracing-label-action":                 "delivery.tekton.dev/action",
		"tracing-label-application":            "delivery.tekton.dev/application",
		"tracing-label-component":              "delivery.tekton.dev/component",
	}
	if got := DescribeIgnored(released); got != nil {
		t.Errorf("the values of the release: %q", got)
	}
	changed := map[string]string{
		"hub-catalog-type":               "tektonhub",
		"auto-configure-new-github-repo": " true ",
		"catalog-1-type":                 "tektonhub",
		"unknown":                        "x",
	}
	want := []string{
		`key "auto-configure-new-github-repo" of Pipelines-as-Code has no effect: ` + noConfigure,
		`key "catalog-1-type" of Pipelines-as-Code has no effect: ` + noTektonHub,
		`key "hub-catalog-type" of Pipelines-as-Code has no effect: ` + noTektonHub,
	}
	if diff := gocmp.Diff(want, DescribeIgnored(changed)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// docs/migration.md has one table of the keys and fields of PaC that do not mean the same.
// `go test ./pkg/config -run TestMigrationPageHasTheTable -update` writes it.
func TestMigrationPageHasTheTable(t *testing.T) {
	const file = "../../docs/migration.md"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(data), "\n## Settings that do nothing\n")
	section, after, _ := strings.Cut(rest, "\n## ")
	intro, table, found := strings.Cut(section, "\n|")
	if !found {
		t.Fatal("docs/migration.md has no table of settings that do nothing")
	}
	want := migrationTable()
	if *update {
		page := before + "\n## Settings that do nothing\n" + intro + "\n" + want + "\n## " + after
		if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(strings.TrimSpace(want), "|"+strings.TrimRight(table, "\n")); diff != "" {
		t.Errorf("run with -update (-want +got):\n%s", diff)
	}
}

// migrationTable has one row for the settings of one kind that have one text.
func migrationTable() string {
	type row struct{ kind, instead string }
	names := map[row][]string{}
	add := func(kind string, settings []pacv1alpha1.Setting) {
		for _, s := range settings {
			if s.Treatment != pacv1alpha1.Served {
				r := row{kind, s.Instead}
				names[r] = append(names[r], "`"+s.Name+"`")
			}
		}
	}
	keys := append(PaCKeys(), tektonHub("catalog-N-type"))
	add("ConfigMap", keys)
	add("Repository", pacv1alpha1.UnservedFields())
	var rows []row
	for r := range names {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(names[a][0], names[b][0]))
	})
	var page strings.Builder
	page.WriteString("| where | keys or fields | instead |\n|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&page, "| %s | %s | %s |\n", r.kind, strings.Join(names[r], ", "), r.instead)
	}
	return page.String()
}
