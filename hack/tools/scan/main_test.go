// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// S37: a scan fails for what is called and fixed, and names it; it tells of what is called and has
// no fix, and says nothing of what is not called.
func TestWhatIsReachableAndFixedFails(t *testing.T) {
	var out bytes.Buffer
	known := database(t, map[string]string{"ToTitle": "99.0.0", "Repeat": "", "ToUpperSpecial": "99.0.0"})
	if err := run(t.Context(), &out, known, "testdata/caller", []string{"."}); !errors.Is(err, errFound) {
		t.Errorf("%v, want %v", err, errFound)
	}
	for _, want := range []string{
		"strings.ToTitle, called from example.com/caller: fixed in v99.0.0",
		"strings.Repeat, called from example.com/caller: no fix yet",
		"2 vulnerabilities can be reached, 1 of them are fixed upstream",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it says\n%swant %q", out.String(), want)
		}
	}
	if err := report(&out, []finding{{Trace: []frame{{Function: "Repeat"}}}}); err != nil {
		t.Errorf("%v for what nobody has fixed", err)
	}
}

// A database that does not answer, or packages that cannot be read, are no clean bill of health.
func TestAScanThatFailsSaysSo(t *testing.T) {
	empty := t.TempDir()
	write(t, filepath.Join(empty, "index", "modules.json"), "[]")
	for name, test := range map[string]struct{ database, packages, says string }{
		"nothing listens": {
			"http://127.0.0.1:1", ".", "http://127.0.0.1:1: the vulnerability database does not answer",
		},
		"no index":              {"file://" + empty, ".", "give the address of a mirror, for example make scan DB="},
		"there is no such code": {database(t, nil), "./missing", "running govulncheck"},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), io.Discard, test.database, "testdata/caller", []string{test.packages})
			if err == nil || errors.Is(err, errFound) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("it says %v, want %q", err, test.says)
			}
		})
	}
}

// database makes one in the format of https://go.dev/doc/security/vuln/database. It knows functions
// of the package strings that are vulnerable, each with the version of Go that fixes it, or none.
func database(t *testing.T, functions map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	const modified = `"modified": "2026-01-02T03:04:05Z"`
	var index []string
	for function, fixed := range functions {
		events := `{"introduced": "0"}`
		if fixed != "" {
			events += fmt.Sprintf(`, {"fixed": %q}`, fixed)
		}
		index = append(index, fmt.Sprintf(`{"id": "GO-%s", %s, "fixed": %q}`, function, modified, fixed))
		write(t, filepath.Join(dir, "ID", "GO-"+function+".json"), fmt.Sprintf(`{"schema_version": "1.3.1", "id": "GO-%s", %s, "affected": [{
			"package": {"name": "stdlib", "ecosystem": "Go"}, "ranges": [{"type": "SEMVER", "events": [%s]}],
			"ecosystem_specific": {"imports": [{"path": "strings", "symbols": [%q]}]}}]}`, function, modified, events, function))
	}
	write(t, filepath.Join(dir, "index", "db.json"), `{`+modified+`}`)
	write(t, filepath.Join(dir, "index", "modules.json"),
		fmt.Sprintf(`[{"path": "stdlib", "vulns": [%s]}]`, strings.Join(index, ",")))
	return "file://" + dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
