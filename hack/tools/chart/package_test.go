// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

const digests = "0000000000000000000000000000000000000000000000000000000000000001  r.example/p/receiver\n" +
	"0000000000000000000000000000000000000000000000000000000000000002  r.example/p/controller\n"

func packaged(t *testing.T, lines string) (string, error) {
	t.Helper()
	t.Setenv("SOURCE_DATE_EPOCH", "1790000000")
	dir := t.TempDir()
	file := filepath.Join(dir, "digests.txt")
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := tool(t, "package", "-version", "v1.2.3", "-digests", file, "-out", dir)
	return strings.TrimSpace(out), err
}

// The package of a release installs what the folder does, with the release's images by digest. The
// files of config/ are in it, and the same sources give the same bytes.
func TestPackage(t *testing.T) {
	file, err := packaged(t, digests)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(file) != "plumbline-1.2.3.tgz" {
		t.Errorf("the package is %s", file)
	}
	again, err := packaged(t, digests)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal([]byte(read(t, file)), []byte(read(t, again))) {
		t.Error("two packages differ")
	}
	out, err := tool(t, "template", "-chart", file)
	if err != nil {
		t.Fatal(err)
	}
	want, got := rendered(t), parse(t, out)
	for component, digit := range map[string]string{"receiver": "1", "controller": "2"} {
		image := "r.example/p/" + component + "@sha256:" + strings.Repeat("0", 63) + digit
		container(t, want, component)["image"] = image
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the folder (-) and the package (+) differ:\n%s", diff)
	}
	c, err := loader.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if c.Metadata.Version != "1.2.3" || c.Metadata.AppVersion != "v1.2.3" {
		t.Errorf("version %s, appVersion %s", c.Metadata.Version, c.Metadata.AppVersion)
	}
}

func TestPackageRefusesIncompleteDigests(t *testing.T) {
	receiver, _, _ := strings.Cut(digests, "\n")
	for name, lines := range map[string]string{
		"none":           "",
		"one":            receiver + "\n",
		"the same twice": receiver + "\n" + receiver + "\n",
		"two registries": receiver + "\n" + strings.Replace(strings.Split(digests, "\n")[1], "r.example", "s.example", 1) + "\n",
	} {
		if file, err := packaged(t, lines); err == nil {
			t.Errorf("%s: %s was written", name, file)
		}
	}
}

// A copy of the folder without its symbolic link installs nothing and says why: Flux drops links
// from the repositories that it copies.
func TestCopyWithoutLink(t *testing.T) {
	chart := filepath.Join(t.TempDir(), "plumbline")
	if err := os.CopyFS(filepath.Join(chart, "templates"), os.DirFS(source+"/templates")); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"Chart.yaml", "values.yaml", "values.schema.json"} {
		if err := os.WriteFile(filepath.Join(chart, file), []byte(read(t, filepath.Join(source, file))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := tool(t, "template", "-chart", chart)
	if err == nil || !strings.Contains(err.Error(), "this copy of the chart has no file config/") {
		t.Errorf("got %v", err)
	}
}

// NOTES.txt has the steps that the values leave.
func TestNotes(t *testing.T) {
	for name, test := range map[string]struct {
		values   map[string]any
		has, not []string
	}{
		"no values": {nil, []string{"1. For GitHub, store", "2. Route the host", "6. Create a Repository", "https://<your host>/"}, nil},
		"all given": {
			map[string]any{
				"github": map[string]any{"existingSecret": "s"}, "existingConfigMap": "c",
				"ingress": map[string]any{"enabled": true, "host": "h.example"},
			},
			[]string{"1. Set the webhook URL", "https://h.example/", "-preflight -github-app-secret=s -config-map=c", "4. Create a Repository"}, []string{"store the App", "Route the host"}},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := render(options{chart: source, namespace: "plumbline", values: test.values})
			if err != nil {
				t.Fatal(err)
			}
			notes := files["plumbline/templates/NOTES.txt"]
			for _, want := range test.has {
				if !strings.Contains(notes, want) {
					t.Errorf("no %q in\n%s", want, notes)
				}
			}
			for _, not := range test.not {
				if strings.Contains(notes, not) {
					t.Errorf("%q in\n%s", not, notes)
				}
			}
		})
	}
}
