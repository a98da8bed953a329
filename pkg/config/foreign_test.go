// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The keys of Pipelines-as-Code's ConfigMap that docs/migration.md says do nothing are read by
// nothing, and reported.
func TestKeysThatDoNothingAreOnThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/migration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Settings that do nothing")
	section, _, _ = strings.Cut(section, "\n## ")
	keys := 0
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(section, -1) {
		for _, key := range strings.Split(row[1], ", ") {
			key = strings.Trim(key, "`")
			keys++
			if _, err := New(map[string]string{key: "x"}); err == nil ||
				!strings.Contains(err.Error(), `key "`+key+`": this version does not read it`) {
				t.Errorf("%s is read: %v", key, err)
			}
		}
	}
	if keys != 14 {
		t.Errorf("%d keys are on the page, want 14", keys)
	}
}
