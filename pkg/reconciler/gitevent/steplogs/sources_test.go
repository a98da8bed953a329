// SPDX-License-Identifier: Apache-2.0

package steplogs

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
)

func TestLogNamesSourceLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]v1alpha1.SourceLine{
		"main.go:12:3: undefined: x":         {Path: "main.go", Line: 12, Message: "undefined: x"},
		"./pkg/a.go:7: declared, not used":   {Path: "pkg/a.go", Line: 7, Message: "declared, not used"},
		"    login_test.go:12: got 500":      {Path: "login_test.go", Line: 12, Message: "got 500"},
		"a/../b.c:1: <b>@all</b> ```":        {Path: "b.c", Line: 1, Message: "<b>@all</b> ```"},
		"src/Füße.py:2147483647:1: E501":     {Path: "src/Füße.py", Line: 2147483647, Message: "E501"},
		"../x.go:1: outside":                 {},
		"a/../../x.go:1: outside":            {},
		"/etc/passwd:1: outside":             {},
		"./:1: the repository":               {},
		":1: nothing":                        {},
		"x.go:0: no line":                    {},
		"x.go:1000000000000: no line":        {},
		"x.go:99999999999999999999: no line": {},
		"x.go:1:":                            {},
		"x.go: no number":                    {},
		"FAIL":                               {},
		strings.Repeat("d/", 200) + "x.go:1: the path is too long": {},
	} {
		got := sources([]string{line}, config.Default().ErrorDetection)
		if want == (v1alpha1.SourceLine{}) && len(got) == 0 {
			continue
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("%q: %+v, want %+v", line, got, want)
		}
	}
}

func TestFirstSourceLinesOfTheLastLinesAreTaken(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range 10_000 {
		lines = append(lines, fmt.Sprintf("x.go:%d: wrong", i+1), "noise", fmt.Sprintf("x.go:%d: wrong", i+1))
	}
	d := config.Default().ErrorDetection
	for _, test := range []struct{ searched, first, n int }{{30_000, 1, 50}, {300, 9901, 50}, {30, 9991, 10}, {0, 0, 0}} {
		d.Lines = test.searched
		got := sources(lines, d)
		if len(got) != test.n || test.n > 0 && int(got[0].Line) != test.first {
			t.Errorf("of %d lines: %d, %+v", test.searched, len(got), got)
		}
	}
	d.Detect = false
	if got := sources(lines, d); got != nil {
		t.Errorf("without detection: %+v", got)
	}
}

// A line of megabytes is searched at its beginning only.
func TestLongLineIsCut(t *testing.T) {
	t.Parallel()
	long := "x.go:1: " + strings.Repeat("é", 1<<20)
	got := sources([]string{long, strings.Repeat("x", maxLine) + ":1: too far"}, config.Default().ErrorDetection)
	if len(got) != 1 || v1alpha1.Length(got[0].Message) > v1alpha1.MaxSourceMessage+len("… ") ||
		!utf8.ValidString(got[0].Message) {
		t.Errorf("%d bytes, %+v", len(got[0].Message), got)
	}
}

// Secrets are masked in source lines, also a Secret that begins on one line and ends on the next.
func TestSourceLinesAreMasked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, pod := f.failed("unit", "a.go:1: the password is hunter2-hunter2\nb.go:2: hunter2-\nhunter2 again")
	f.secrets["login"] = map[string][]byte{"password": []byte("hunter2-hunter2")}
	pod.Spec.Containers = []corev1.Container{{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "login"},
	}}}}}
	with := request()
	with.Lines, with.Detection = 1, config.Default().ErrorDetection
	log, again := f.readAs(with)
	want := []v1alpha1.SourceLine{
		{Path: "a.go", Line: 1, Message: "the password is *****"}, {Path: "b.go", Line: 2, Message: "***** again"},
	}
	if again || len(log.Steps) != 1 || cmp.Diff(want, log.Steps[0].Sources) != "" {
		t.Errorf("again %v, %+v", again, log)
	}
}
