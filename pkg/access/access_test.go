// SPDX-License-Identifier: Apache-2.0

package access

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestDecide(t *testing.T) {
	yes, no := true, false
	tests := map[string]struct {
		in     Input
		want   Decision
		reason string
	}{
		"a push is allowed": {
			in: Input{Trigger: v1alpha1.TriggerPush}, want: Allowed, reason: "can push",
		},
		"a push is allowed even when a look-up said that its sender cannot write": {
			in: Input{Trigger: v1alpha1.TriggerPush, CanWrite: &no}, want: Allowed, reason: "can push",
		},
		"a pull request from a branch of the same repository is allowed without a look-up": {
			in: Input{Trigger: v1alpha1.TriggerPullRequest, SameRepository: true}, want: Allowed, reason: "lives in this repository",
		},
		"a pull request from a fork asks for the look-up first": {
			in: Input{Trigger: v1alpha1.TriggerPullRequest}, want: NeedsWriteAccess, reason: "not known yet",
		},
		"a pull request from a fork by someone with write access asks for who acted": {
			in: Input{Trigger: v1alpha1.TriggerPullRequest, CanWrite: &yes}, want: NeedsActorAccess, reason: "not known yet",
		},
		"a pull request from a fork by someone with write access, who acted as well, is allowed": {
			in: Input{Trigger: v1alpha1.TriggerPullRequest, CanWrite: &yes, ActorCanWrite: &yes}, want: Allowed, reason: "has write access",
		},
		"what a stranger did to a writer's pull request from a fork is not approved": {
			in: Input{Trigger: v1alpha1.TriggerPullRequest, CanWrite: &yes, ActorCanWrite: &no}, want: Unapproved, reason: "but not who changed it",
		},
		"what a writer did to a stranger's pull request is not approved": {
			in: Input{Trigger: v1alpha1.TriggerPullRequest, CanWrite: &no, ActorCanWrite: &yes}, want: Unapproved, reason: "The author of the pull request has no",
		},
		"a label asks for who set it, on a branch of the same repository too": {
			in: Input{Trigger: v1alpha1.TriggerPullRequest, SameRepository: true, Label: true}, want: NeedsActorAccess, reason: "not known yet",
		},
		"a stranger's label is not approved on a branch of the same repository": {
			in: Input{Trigger: v1alpha1.TriggerPullRequest, SameRepository: true, Label: true, ActorCanWrite: &no}, want: Unapproved, reason: "set the label",
		},
		"a stranger's label is not approved on a writer's fork": {
			in: Input{Trigger: v1alpha1.TriggerPullRequest, Label: true, CanWrite: &yes, ActorCanWrite: &no}, want: Unapproved, reason: "set the label",
		},
		"a writer's label on a branch of the same repository is allowed": {
			in: Input{Trigger: v1alpha1.TriggerPullRequest, SameRepository: true, Label: true, ActorCanWrite: &yes}, want: Allowed, reason: "lives in this",
		},
		"a writer's label on a fork asks for the author too": {
			in: Input{Trigger: v1alpha1.TriggerPullRequest, Label: true, ActorCanWrite: &yes}, want: NeedsWriteAccess, reason: "not known yet",
		},
		"a writer's label never makes a stranger's pull request run": {
			in: Input{Trigger: v1alpha1.TriggerPullRequest, Label: true, ActorCanWrite: &yes, CanWrite: &no}, want: Unapproved, reason: "The author",
		},
		"a pull request from a fork by a stranger is not approved": {
			in: Input{Trigger: v1alpha1.TriggerPullRequest, CanWrite: &no}, want: Unapproved, reason: "no write access",
		},
		"a comment asks for who wrote it first": {
			in:   Input{Trigger: v1alpha1.TriggerPullRequest, Comment: true, SameRepository: true, CanWrite: &yes},
			want: NeedsCommenterAccess, reason: "not known yet",
		},
		"a stranger's comment is not approved, on whatever pull request": {
			in:   Input{Trigger: v1alpha1.TriggerPullRequest, Comment: true, CommenterCanWrite: &no, SameRepository: true, CanWrite: &yes},
			want: Unapproved, reason: "The author of the comment has no write access",
		},
		"a writer's comment on a branch of the same repository is allowed": {
			in:   Input{Trigger: v1alpha1.TriggerPullRequest, Comment: true, CommenterCanWrite: &yes, SameRepository: true},
			want: Allowed, reason: "lives in this repository",
		},
		"a writer's comment on a fork asks for the author of the pull request too": {
			in:   Input{Trigger: v1alpha1.TriggerPullRequest, Comment: true, CommenterCanWrite: &yes},
			want: NeedsWriteAccess, reason: "not known yet",
		},
		"a writer's comment on a writer's fork is allowed": {
			in:   Input{Trigger: v1alpha1.TriggerPullRequest, Comment: true, CommenterCanWrite: &yes, CanWrite: &yes},
			want: Allowed, reason: "has write access",
		},
		"a writer's comment never makes a stranger's pull request run": {
			in:   Input{Trigger: v1alpha1.TriggerPullRequest, Comment: true, CommenterCanWrite: &yes, CanWrite: &no},
			want: Unapproved, reason: "The author of the pull request has no write access",
		},
		"a comment that is on no pull request is not allowed as a push": {
			in: Input{Trigger: v1alpha1.TriggerPush, Comment: true}, want: NeedsCommenterAccess, reason: "not known yet",
		},
		"a policy that cannot be evaluated denies a pull request, whoever opened it": {
			in:   Input{Trigger: v1alpha1.TriggerPullRequest, Restricted: true, SameRepository: true, CanWrite: &yes},
			want: Unapproved, reason: "have a policy",
		},
		"and a writer's comment on it": {
			in:   Input{Trigger: v1alpha1.TriggerPullRequest, Restricted: true, Comment: true, CommenterCanWrite: &yes, SameRepository: true},
			want: Unapproved, reason: "have a policy",
		},
		"and an unknown trigger": {
			in: Input{Trigger: "workflow_run", Restricted: true}, want: Unapproved, reason: "have a policy",
		},
		"pushes are not what a policy is about": {
			in: Input{Trigger: v1alpha1.TriggerPush, Restricted: true}, want: Allowed, reason: "can push",
		},
		"an input that nobody filled is not approved": {
			in: Input{}, want: Unapproved, reason: "No rule allows",
		},
		"an unknown trigger is not approved, whatever else is claimed": {
			in: Input{Trigger: "workflow_run", SameRepository: true, CanWrite: &yes}, want: Unapproved, reason: "No rule allows",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, reason := Decide(tt.in)
			if got != tt.want {
				t.Errorf("Decide(%+v) = %v, want %v", tt.in, got, tt.want)
			}
			if !strings.Contains(reason, tt.reason) {
				t.Errorf("reason %q does not contain %q", reason, tt.reason)
			}
		})
	}
}

func TestTheZeroDecisionAllowsNothing(t *testing.T) {
	var d Decision
	if d != Unapproved {
		t.Errorf("the zero Decision is %v, want Unapproved", d)
	}
}

func TestEveryReasonIsOneSentence(t *testing.T) {
	for _, s := range chain() {
		if strings.Count(s.reason, ".") != 1 || !strings.HasSuffix(s.reason, ".") {
			t.Errorf("reason %q is not one sentence", s.reason)
		}
	}
}
