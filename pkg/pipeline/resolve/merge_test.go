// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// jsonOf is a document as parse reads it, as JSON, "" if it is refused.
func jsonOf(t *testing.T, text string) string {
	t.Helper()
	doc := &document{file: "x", text: text}
	if err := doc.parse(&budget{}); err != nil {
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v is not Invalid", text, err)
		}
		return ""
	}
	data, err := json.Marshal(doc.tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A merge key means what it means in Kubernetes' library, which kubectl and Pipelines-as-Code use:
// its mapping counts as written in its place.
func TestMergeKeysAreReadAsKubernetesReadsThem(t *testing.T) {
	const anchors = "x: &x {a: x, b: x}\ny: &y {b: y, c: y}\nlist: &list [{a: l}]\nword: &word w\n"
	for name, mapping := range map[string]string{
		"its own key behind it":               "{<<: *x, a: own}",
		"its own key in front of it":          "{a: own, <<: *x}",
		"its own keys around it":              "{a: own, <<: *x, b: own}",
		"two merge keys":                      "{<<: *x, <<: *y}",
		"two merge keys, the other way round": "{<<: *y, <<: *x}",
		"two with a key between them":         "{<<: *x, b: own, <<: *y}",
		"a list":                              "{<<: [*x, *y]}",
		"a list, the other way round":         "{<<: [*y, *x], c: own}",
		"a list behind a key":                 "{c: own, <<: [*x, *y]}",
		"a mapping that is written there":     "{a: own, <<: {a: m, d: m}}",
		"a merge within what is merged":       "{c: own, <<: {<<: *x, b: m}}",
		"its own key behind one within":       "{<<: {b: m, <<: *x}, c: own}",
		"the same key twice":                  "{a: 1, <<: *x, a: 2, a: 3}",
		"a merge key in quotes is a key":      `{"<<": *x, a: own}`,
		"with a tag":                          "{a: own, !!merge <<: *x}",
		"an empty mapping":                    "{a: own, <<: {}}",
		"an empty list":                       "{a: own, <<: []}",
		"nothing":                             "{a: own, <<: }",
		"a text":                              "{<<: word}",
		"an alias of a text":                  "{<<: *word}",
		"an alias of a list":                  "{<<: *list}",
		"a list within a list":                "{<<: [[*x]]}",
		"an alias of a list within a list":    "{<<: [*list]}",
		"a list with a text":                  "{<<: [*x, word]}",
	} {
		t.Run(name, func(t *testing.T) {
			for _, text := range []string{anchors + "m: " + mapping + "\n", anchors + "m: [{<<: " + mapping + ", z: 1}]\n"} {
				if got, want := jsonOf(t, text), kubernetesReads(text); got != want {
					t.Errorf("%q is read as\n%s\nand by Kubernetes as\n%s", strings.TrimPrefix(text, anchors), got, want)
				}
			}
		})
	}
}
