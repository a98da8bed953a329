// SPDX-License-Identifier: Apache-2.0

package match

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestALongCommentNeedsASmallExpression(t *testing.T) {
	long := strings.Repeat("a", 65535) + "!"
	tests := map[string]struct {
		expression, reason string
	}{
		"one that people write": {`(?i)(deploy|rollback|!$)`,
			`selected: on-comment "(?i)(deploy|rollback|!$)" matches the comment "` + long[:197] + `…`},
		"one that is large": {
			`((\w\W?)+){100}$`, `on-comment "((\\w\\W?)+){100}$" has 802 parts, too many for a comment of 65536 bytes`,
		},
		"a reason repeats the beginning of a line": {
			`^b`, `on-comment "^b" does not match the comment "` + long[:256] + `…"`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			event := Event{Trigger: v1alpha1.TriggerPullRequest, EventType: CommentEvent, Comment: long}
			got, err := Select(event, Pipeline{Annotations: annotated("on-comment", tt.expression)})
			if err != nil || got.Reason != tt.reason || got.Selected != strings.HasPrefix(tt.reason, Selected) {
				t.Errorf("Select = %+v, %v, want %q", got, err, tt.reason)
			}
		})
	}
}
