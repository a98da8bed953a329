// SPDX-License-Identifier: Apache-2.0

package template

import (
	"regexp"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Tekton and the kubelet replace $(name) everywhere in a manifest, and Tekton has no way to escape
// it (https://github.com/tektoncd/pipeline/issues/4931). A commit's title or a branch's name must
// not become a variable. So in values a blank is put between the two characters.
const (
	opening  = "$("
	harmless = "$ ("
)

// apart returns a value with a blank wherever a variable would begin.
func apart(text string) string { return strings.ReplaceAll(text, opening, harmless) }

// allApart applies apart to all strings of a value, keys included.
func allApart(value any) any {
	switch value := value.(type) {
	case string:
		return apart(value)
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = allApart(item)
		}
		return list
	case map[string]any:
		mapping := make(map[string]any, len(value))
		for key, item := range value {
			mapping[apart(key)] = allApart(item)
		}
		return mapping
	}
	return value
}

// joiner joins pieces of an author's text and values. The author's pieces stay as they are. No
// variable begins where two pieces meet.
type joiner struct {
	b      strings.Builder
	apart  bool // false for texts that are no part of a manifest
	dollar bool // it ends with one
}

func (j *joiner) add(piece string) {
	if piece == "" {
		return
	}
	if j.apart && j.dollar && piece[0] == '(' {
		j.b.WriteByte(' ')
	}
	j.b.WriteString(piece)
	j.dollar = piece[len(piece)-1] == '$'
}

// wholeVariable is $(name).
var wholeVariable = regexp.MustCompile(`\$\([^()\s]+\)`)

// placeable refuses a secret that Tekton would read as a variable. A blank cannot be put into it: a
// password with a blank is another password.
func placeable(name, value string) error {
	if !wholeVariable.MatchString(value) {
		return nil
	}
	return fault.Invalidf(
		reasonSecretHoldsVariable,
		"{{ %s }}: the value of the secret holds $(…), which Tekton and Kubernetes replace: "+
			"let the step read it from its Secret (env with secretKeyRef, or a workspace)",
		shorten(name),
	)
}
