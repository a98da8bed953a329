// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "testing"

func TestRef(t *testing.T) {
	for name, tt := range map[string]struct {
		spec GitEventSpec
		want string
	}{
		"a push to a branch":               {GitEventSpec{BaseRef: "refs/heads/feature/x"}, "feature/x"},
		"a push of a tag":                  {GitEventSpec{BaseRef: "refs/tags/v1"}, "tags/v1"},
		"a pull request":                   {GitEventSpec{BaseRef: "main", HeadRef: "topic", PullRequest: &PullRequest{Number: 12}}, "#12"},
		"a comment, which names no branch": {GitEventSpec{PullRequest: &PullRequest{Number: 12}, Comment: &Comment{ID: 1}}, "#12"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.spec.Ref(); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
