// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// A comment on a commit that was pushed can have a command, and nothing else. It is carried out as
// for a push to the branch that the commit is the head of, or to the tag: what is not, somebody has
// replaced.

const (
	branchPrefix = "refs/heads/"
	tagPrefix    = "refs/tags/"
)

// onCommit reports whether the event is a comment on a commit.
func (p *planner) onCommit() bool { return p.spec.Comment != nil && p.spec.PullRequest == nil }

// saidOnCommit is the end of a comment on a commit that has no command, nil for every other event.
func (p *planner) endRemarkOnCommit() *Plan {
	if !p.onCommit() {
		return nil
	}
	return p.end(
		v1alpha1.DispositionIgnored,
		p.spec.SHA,
		"NoCommand",
		"a comment on a commit starts something only if it has a command",
	)
}

// aim notes which branch or tag a command on a commit names. Without one it is the default branch,
// which the Git service is asked for. What an attempt before this one has found out stands.
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

// isHead reports whether a command on a commit, sha, may be carried out: the Git service says in
// the spec where the branch or tag is now, which is at the commit, or was when an attempt before
// this one decided. A command that cannot be read is not refused for where it is written.
func (p *planner) checkIsHead(sha string) error {
	head := p.spec.SHA
	if !p.onCommit() || head == sha && p.Earlier == nil {
		return nil
	}
	p.spec.SHA, p.spec.Commit = sha, nil // what is described may be another one
	if readable := p.malformed == nil; p.Earlier != nil || !readable {
		return nil
	}
	named := "the branch " + shown(strings.TrimPrefix(p.spec.BaseRef, branchPrefix))
	if tag, is := strings.CutPrefix(p.spec.BaseRef, tagPrefix); is {
		named = "the tag " + shown(tag)
	}
	return ignored(
		"NotTheHead",
		fmt.Sprintf(
			"nothing was done: %s is at commit %s, and the comment is on %s. Comment on that one, or name another branch:NAME or tag:NAME",
			named,
			head,
			sha,
		),
	)
}

// ofRef leaves of the records of a commit those of the branch or tag that a command on it is about.
// Those of pull requests are of one.
func (p *planner) ofRef(all []history.Record) []history.Record {
	if !p.onCommit() {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(r history.Record) bool { return r.Event.GitRef() != p.spec.BaseRef })
}
