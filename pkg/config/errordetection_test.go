// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

// A bad pattern keeps the previous one, and the error says what is wrong.
func TestBadPatternKeepsThePreviousOne(t *testing.T) {
	t.Parallel()
	const good = `^(?P<filename>.+?):(?P<line>\d+) (?P<error>.+)$`
	previous, err := New(map[string]string{keyDetectPattern: good})
	if err != nil || previous.ErrorDetection.Pattern.String() != good {
		t.Fatalf("%v, %v", previous.ErrorDetection.Pattern, err)
	}
	for name, test := range map[string]struct{ pattern, problem string }{
		"it does not compile": {`(?P<filename>[`, "it does not compile"},
		"it is of Perl":       {`(?P<filename>a)(?P<line>1)(?P<error>(?=x))`, "it does not compile"},
		"no file":             {`^(?P<line>\d+) (?P<error>.+)$`, "it has no group filename"},
		"no line":             {`^(?P<filename>.+): (?P<error>.+)$`, "it has no group line"},
		"no message":          {`^(?P<filename>.+):(?P<line>\d+)$`, "it has no group error"},
		"too long":            {good + strings.Repeat("x", maxPattern), "it has 1071 bytes"},
	} {
		got, err := parse(map[string]string{keyDetectPattern: test.pattern}, previous)
		if got.ErrorDetection.Pattern.String() != good || err == nil ||
			!strings.HasPrefix(err.Error(), `key "error-detection-simple-regexp": `+test.problem+"; allowed: ") {
			t.Errorf("%s: %q, %v", name, got.ErrorDetection.Pattern, err)
		}
	}
	if reset, _ := parse(nil, previous); reset.ErrorDetection.Pattern.String() != standardPattern {
		t.Errorf("without the key the pattern is %q", reset.ErrorDetection.Pattern)
	}
}
