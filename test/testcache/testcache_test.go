// SPDX-License-Identifier: Apache-2.0

package testcache

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// module is a module with a command and a test that only runs it by the go command.
var module = map[string]string{
	"go.mod":               "module example.com/m\n\ngo 1.25\n",
	"go.sum":               "",
	"cmd/hello/main.go":    "package main\n\nimport \"example.com/m/text\"\n\nfunc main() { println(text.Hello) }\n",
	"text/text.go":         "package text\n\nimport _ \"embed\"\n\n//go:embed words/hello.txt\nvar Hello string\n\n//go:embed words/other.txt\nvar Other string\n",
	"text/words/hello.txt": "hello",
	"text/words/other.txt": "other",
	"suite/suite_test.go": `package suite

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"example.com/m/testcache"
)

func TestMain(m *testing.M) {
	if err := testcache.Packages(context.Background(), "..", "./cmd/hello"); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := testcache.Finish(); err != nil {
		panic(err)
	}
	os.Exit(code)
}

func TestHello(t *testing.T) {
	if out, err := exec.Command("go", "run", "../cmd/hello").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const path, text = "../text/words/hello.txt", "TEXT"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
}
`,
}

// A change of one byte in a file that only the go command reads makes the test run again.
func TestChangedSourceIsNotAnsweredFromTheCache(t *testing.T) {
	t.Parallel()
	for _, changed := range []string{"text/text.go", "text/words/other.txt", "go.mod"} {
		t.Run(changed, func(t *testing.T) {
			t.Parallel()
			root := write(t, "hello")
			if runsFromCache(t, root) {
				t.Fatal("the first run is cached")
			}
			if !runsFromCache(t, root) {
				t.Fatal("a second run is not cached although nothing has changed")
			}
			path := filepath.Join(root, changed)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			store(t, path, string(content)+"\n", time.Unix(1e9, 0))
			if runsFromCache(t, root) {
				t.Errorf("%s has changed, and go test shows the result of before", changed)
			}
		})
	}
}

// A source changes after the programs were built and before the test ends: the result belongs to
// the source that was built.
func TestChangeDuringTheTestIsNotStored(t *testing.T) {
	t.Parallel()
	root := write(t, "hello again")
	for run := 1; run <= 2; run++ {
		if runsFromCache(t, root) {
			t.Fatalf("run %d is cached, although the program of the changed source has not run yet", run)
		}
	}
	if !runsFromCache(t, root) {
		t.Error("a third run is not cached although nothing has changed since the second")
	}
}

// write writes the module, with a copy of this package, into a folder. Its test writes text into
// the embedded file, which has "hello" before.
func write(t *testing.T, text string) (root string) {
	t.Helper()
	root = t.TempDir()
	self, err := os.ReadFile("testcache.go")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"testcache/testcache.go": string(self)}
	for name, content := range module {
		files[name] = strings.ReplaceAll(content, "TEXT", text)
	}
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		store(t, path, content, time.Unix(1e9, 0))
	}
	return root
}

// store writes a file that seems old: go test does not store a result that has read a file younger
// than two seconds.
func store(t *testing.T, path, content string, changed time.Time) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, changed); err != nil {
		t.Fatal(err)
	}
}

// runsFromCache reports whether go test answers for the module's test without running it.
func runsFromCache(t *testing.T, root string) bool {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "./suite")
	command.Dir = root
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.Contains(string(out), "(cached)")
}
