// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/cel"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

var update = flag.Bool("update", false, "write the golden files")

func goldenVariables() map[string]string {
	return map[string]string{
		"revision": "0123456789abcdef0123456789abcdef01234567", "repo_owner": "acme", "repo_name": "app",
		"target_branch": "main", "source_branch": "feature/x", "git_tag": "", "sender": "jane",
		"pull_request_number": "42", "git_auth_secret": "pac-gitauth-abc",
	}
}

// scopeOf is a scope in which nothing but variables is known.
func scopeOf(t testing.TB, vars map[string]string) *template.Scope {
	t.Helper()
	scope, err := template.New(template.Facts{Key: "event", Variables: vars})
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

func TestGolden(t *testing.T) {
	cases, err := filepath.Glob("testdata/*/in")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, dir := range cases {
		t.Run(filepath.Base(filepath.Dir(dir)), func(t *testing.T) {
			got := describe(t, Load(readFiles(t, dir)), factsOf(t, filepath.Join(filepath.Dir(dir), "facts.yaml")),
				shelf(filepath.Join(filepath.Dir(dir), "remote")))
			golden := filepath.Join(filepath.Dir(dir), "want.yaml")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got (run with -update if it is right):\n%s", diff)
			}
		})
	}
}

func readFiles(t testing.TB, dir string) []git.File {
	t.Helper()
	var files []git.File
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files = append(files, git.File{Path: ".tekton" + strings.TrimPrefix(path, dir), Data: data})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// shelf is a directory that holds what references stand for: a web address below its scheme and
// host, a path of the repository below "repository", a name on the hub below "hub".
type shelf string

func (s shelf) Read(_ context.Context, _ Kind, ref string) (git.File, error) {
	at := strings.NewReplacer("://", "/", "?", "_", ":", "_").Replace(ref)
	if !strings.Contains(ref, "/") {
		at = "hub/" + at
	} else if !strings.Contains(ref, "://") {
		at = "repository/" + at
	}
	data, err := os.ReadFile(filepath.Join(string(s), at))
	if err != nil {
		return git.File{}, fault.Invalidf("ReferenceNotFound", "%s is not on the shelf", ref)
	}
	return git.File{Path: ref, Data: data}, nil
}

// describe renders every definition of a set.
func describe(t *testing.T, set *Set, facts template.Facts, references References) string {
	t.Helper()
	scope, err := template.New(facts)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, def := range set.Definitions() {
		fmt.Fprintf(&b, "---\n# %s#%d: %s\n", def.File, def.Document, def.Name)
		run, err := set.Render(t.Context(), def, scope, references)
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%s#%d: %v is not Invalid", def.File, def.Document, err)
			}
			fmt.Fprintf(&b, "# %s: %s\n", fault.Of(err).Reason, err)
			continue
		}
		data, err := yaml.Marshal(run)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(data)
	}
	for _, value := range facts.Secrets {
		quoted := strconv.Quote(value)
		if strings.Contains(b.String(), value) || strings.Contains(b.String(), quoted[1:len(quoted)-1]) {
			t.Errorf("a manifest or an error holds the secret %s", quoted)
		}
	}
	secrets := scope.Secrets()
	for _, marker := range slices.Sorted(maps.Keys(secrets)) {
		fmt.Fprintf(&b, "# %s is %q\n", marker, secrets[marker])
	}
	return b.String()
}

// factsOf reads what is known of the event of a case; without a file that is a few variables.
func factsOf(t testing.TB, path string) template.Facts {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return template.Facts{Key: "event", Variables: goldenVariables()}
	}
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Variables, Headers, Secrets map[string]string
		MergedPull                  *int64
		Body                        map[string]any
		Changed                     struct{ Added, Deleted, Modified, Renamed []string }
		Params                      []template.Param
	}
	if err := yaml.UnmarshalStrict(data, &read); err != nil {
		t.Fatal(err)
	}
	facts := template.Facts{
		Key: "event", Variables: read.Variables, Headers: read.Headers, MergedPull: read.MergedPull, Body: read.Body,
		Params:  read.Params,
		Files:   cel.ChangedFiles(read.Changed.Added, read.Changed.Deleted, read.Changed.Modified, read.Changed.Renamed),
		Secrets: map[template.SecretRef]string{},
	}
	for at, value := range read.Secrets {
		name, key, _ := strings.Cut(at, "/")
		facts.Secrets[template.SecretRef{Name: name, Key: key}] = value
	}
	return facts
}
