// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Refs reads where the pull requests and branches of one repository are now. Tip and Supersedes of
// each service are made of it.
type Refs interface {
	// PullHead returns the head of a pull request, "" if it does not exist.
	PullHead(ctx context.Context, number int) (sha string, err error)
	// BranchTip returns the tip of a branch, "" if it does not exist.
	BranchTip(ctx context.Context, branch string) (sha string, err error)
	// Left reports whether a branch, whose tip is another commit, no longer contains the commit. It
	// is false if the service does not know the commit.
	Left(ctx context.Context, branch, tip, sha string) (bool, error)
}

// Tip implements Tips.
func Tip(ctx context.Context, refs Refs, event *v1alpha1.GitEventSpec) (string, error) {
	if event.PullRequest != nil {
		return refs.PullHead(ctx, int(event.PullRequest.Number))
	}
	branch, isBranch := strings.CutPrefix(event.BaseRef, "refs/heads/")
	if !isBranch {
		return "", nil
	}
	return refs.BranchTip(ctx, branch)
}

// AtTip returns a request to /incoming with the commit that its branch is at now.
func AtTip(ctx context.Context, refs Refs, event *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
	sha, err := Tip(ctx, refs, event)
	if err != nil {
		return nil, err
	}
	if sha == "" {
		return nil, fault.Ignoredf(reasonRefNotFound, "nothing was started: %s has no branch %s",
			event.Project.Owner+"/"+event.Project.Name, strings.TrimPrefix(event.BaseRef, "refs/heads/"))
	}
	out := event.DeepCopy()
	out.SHA = sha
	return out, nil
}

// Supersedes implements History.Supersedes. It reads the tip of a branch first, so that the
// comparison is of two commits, whatever the branch's name looks like.
func Supersedes(ctx context.Context, refs Refs, event *v1alpha1.GitEventSpec) (string, error) {
	if err := CheckSHA(event.SHA); err != nil {
		return "", err
	}
	if event.PullRequest == nil && event.Trigger != v1alpha1.TriggerPush {
		return "", nil
	}
	now, err := Tip(ctx, refs, event)
	if err != nil || now == "" || now == event.SHA {
		return "", err
	}
	if event.PullRequest != nil {
		return now, nil
	}
	left, err := refs.Left(ctx, strings.TrimPrefix(event.BaseRef, "refs/heads/"), now, event.SHA)
	if err != nil || !left {
		return "", err
	}
	return now, nil
}

// Commit returns the commit that a service names in an answer. Anything else than a commit id is a
// Transient fault.
func Commit(what, service, sha string) (string, error) {
	if !IsSHA(sha) {
		return "", fault.Transientf(ReasonBadAnswer, "%s: %s names no commit", what, service)
	}
	return sha, nil
}
