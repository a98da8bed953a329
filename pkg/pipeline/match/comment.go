// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/glob"
)

const (
	// maxCommentSteps limits what one pipeline may cost. RE2 takes at most one step for each part
	// and each byte of the comment, which may have 65536 characters.
	maxCommentSteps = 5_000_000
)

// onComment decides about a comment. No other annotation of the pipeline counts for it.
func onComment(ev Event, annotations map[string]string) (Selection, error) {
	text, found := annotations[pipelinesascode.OnComment]
	if !found {
		return declined("the event is a comment, and there is no annotation on-comment%s",
			misspelt(annotations, pipelinesascode.OnComment)), nil
	}
	expression, parts, err := glob.CompileExpression(text)
	if err != nil {
		return Selection{}, fmt.Errorf("annotation %s: %w", pipelinesascode.OnComment, err)
	}
	comment := strings.TrimSpace(ev.Comment)
	if parts*len(comment) > maxCommentSteps {
		return declined("on-comment %q has %d parts, too many for a comment of %d bytes",
			shorten(text), parts, len(comment)), nil
	}
	line, _, more := strings.Cut(comment, "\n")
	if line = shorten(strings.TrimSpace(line)); more {
		line += " …"
	}
	if expression.MatchString(comment) {
		return Selection{
			Selected: true,
			Reason:   selected(fmt.Sprintf("on-comment %q matches the comment %q", shorten(text), line)),
		}, nil
	}
	return declined("on-comment %q does not match the comment %q", shorten(text), line), nil
}

// OfComments returns the annotations that decide about comments. A comment is not affected by a
// mistake in another annotation, or by what another annotation waits for.
func OfComments(annotations map[string]string) map[string]string {
	return only(annotations, pipelinesascode.OnComment, pipelinesascode.TargetNamespace)
}

func only(annotations map[string]string, names ...string) map[string]string {
	kept := map[string]string{}
	for _, name := range names {
		if value, found := annotations[name]; found {
			kept[name] = value
		}
	}
	return kept
}
