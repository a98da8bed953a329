// SPDX-License-Identifier: Apache-2.0

package match

import (
	"maps"
	"regexp"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
)

// notServedYet names the annotations of spec/compatibility.md 3.2 that change which pipelines run or what they run, and
// that this version does not act on. A pipeline that carries one is not selected, with that as its reason: to run it
// regardless, or to skip it without a word, would both be wrong. Serving one is deleting it here.
var notServedYet = regexp.MustCompile(`^` + regexp.QuoteMeta(pipelinesascode.GroupName) + `/(` +
	`on-comment` +
	`)$`)

// unserved returns the first such annotation, by name.
func unserved(annotations map[string]string) (string, bool) {
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		if notServedYet.MatchString(name) {
			return name, true
		}
	}
	return "", false
}
