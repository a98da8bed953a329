// SPDX-License-Identifier: Apache-2.0

// Package hack tests the scripts of this folder.
package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// suite has tests that fail in the first run only, and one that always fails. It counts the runs in
// files.
const suite = `package suite

import (
	"os"
	"testing"
)

func failsOnce(t *testing.T) {
	if _, err := os.Stat(t.Name()); err != nil {
		_ = os.WriteFile(t.Name(), nil, 0o600)
		t.Error("this run is the first")
	}
}

func TestFirst(t *testing.T)  { failsOnce(t) }
func TestSecond(t *testing.T) { failsOnce(t) }
func TestThird(t *testing.T)  { failsOnce(t) }
func TestPasses(t *testing.T) {}
func TestAlways(t *testing.T) { t.Fatal("this one always fails") }
func TestPanics(t *testing.T) {
	if _, err := os.Stat(t.Name()); err != nil {
		_ = os.WriteFile(t.Name(), nil, 0o600)
		panic("the first run ends the process")
	}
}
`

func TestFailedTestsRunOnceMore(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rerun, run string
		passes     bool
		last       string
	}{
		"all pass":                    {"2", "Passes", true, "of CPU"},
		"two fail once":               {"2", "First|Second|Passes", true, "UNSTEADY: TestFirst TestSecond"},
		"three fail once":             {"2", "First|Second|Third", false, "FAIL\texample.com/m"},
		"one fails always":            {"2", "First|Always", false, "this one always fails"},
		"nothing may run once more":   {"0", "First", false, "this run is the first"},
		"the process ends by a panic": {"2", "Panics", false, "panic: "},
		"the step's log is named": {
			"0", "Always", false, "=== e2e failed: TestAlways (the whole output is in dist/e2e.log)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := runScript(t, test.rerun, test.run)
			if (err == nil) != test.passes {
				t.Errorf("the script ends with %v, want success: %t\n%s", err, test.passes, out)
			}
			lines := strings.Split(out, "\n")
			if end := strings.Join(lines[max(0, len(lines)-12):], "\n"); !strings.Contains(end, test.last) {
				t.Errorf("the end is %q, want %q in it", end, test.last)
			}
			if strings.Contains(out, "UNSTEADY") != strings.Contains(test.last, "UNSTEADY") {
				t.Errorf("the output has UNSTEADY where it should not, or lacks it:\n%s", out)
			}
		})
	}
}

// runScript runs test.sh in a module of its own.
func runScript(t *testing.T, rerun, run string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module example.com/m\n\ngo 1.25\n", "suite_test.go": suite} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script, err := filepath.Abs("test.sh")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(script); err != nil { // go test runs this test again when the script changes
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), script, "e2e", "-vet=off", "-run", run, ".")
	command.Dir = dir
	command.Env = append(os.Environ(), "RERUN_FAILED="+rerun, "GOFLAGS=", "GOWORK=off")
	out, err := command.CombinedOutput()
	return string(out), err
}
