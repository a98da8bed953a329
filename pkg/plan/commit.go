// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// A comment on a pushed commit can only have a command. It is carried out as for a push to the
// branch that the commit is the head of, or to the tag. A commit that is no longer the head has
// been replaced, so its command is not carried out.

const (
	branchPrefix = "refs/heads/"
	tagPrefix    = "refs/tags/"
)

// onCommit reports whether the event is a comment on a commit.
func (p *planner) onCommit() bool { return p.spec.Comment != nil && p.spec.PullRequest == nil }

// endRemarkOnCommit returns the plan of a comment on a commit without a command, nil for every
// other event.
func (p *planner) endRemarkOnCommit() *Plan {
	if !p.onCommit() {
		return nil
	}
	return p.end(v1alpha1.DispositionIgnored, p.spec.SHA, reasonNoCommand,
		"a comment on a commit starts something only if it has a command")
}

// setTargetRef sets the branch or tag that a command on a commit names. Without one it is the
// default branch, which the Git service returns. The result of an earlier attempt does not change.
func (p *planner) setTargetRef() {
	if !p.onCommit() || p.spec.BaseRef != "" {
		return
	}
	switch {
	case p.command.Branch != "":
		p.spec.BaseRef = branchPrefix + p.command.Branch
	case p.command.Tag != "":
		p.spec.BaseRef = tagPrefix + p.command.Tag
	}
	p.spec.HeadRef = p.spec.BaseRef
}

// checkIsHead returns an IgnoredError unless a command on the commit sha may be carried out. The
// spec has the commit that the branch or tag is at now: it must be sha, unless an earlier attempt
// has decided already. A malformed command is not refused for its place.
func (p *planner) checkIsHead(sha string) error {
	head := p.spec.SHA
	if !p.onCommit() || head == sha && p.Earlier == nil {
		return nil
	}
	p.spec.SHA, p.spec.Commit = sha, nil // the description may be of another commit
	if readable := p.malformed == nil; p.Earlier != nil || !readable {
		return nil
	}
	named := "the branch " + shown(strings.TrimPrefix(p.spec.BaseRef, branchPrefix))
	if tag, is := strings.CutPrefix(p.spec.BaseRef, tagPrefix); is {
		named = "the tag " + shown(tag)
	}
	return ignoredError(fault.Ignoredf(
		reasonNotTheHead,
		"nothing was done: %s is at commit %s, and the comment is on %s. "+
			"Comment on the current commit, or name another branch:NAME or tag:NAME",
		named,
		head,
		sha,
	))
}

// ofRef returns the records that belong to the branch or tag of a command on a commit. All records
// of a pull request belong to it.
func (p *planner) ofRef(all []history.Record) []history.Record {
	if !p.onCommit() {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(r history.Record) bool { return r.Event.GitRef() != p.spec.BaseRef })
}
