// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// actionLabeled is a label that was added to a pull request; it runs the existing head.
const actionLabeled = "labeled"

// actionClosed is a pull request that was closed or merged, which cancels its runs.
const actionClosed = "closed"

// startsPull reports whether an action of a pull request may start runs.
func startsPull(action string) bool {
	return slices.Contains([]string{"opened", "synchronize", "reopened", "ready_for_review", actionLabeled}, action)
}

// Starts reports whether an event may start runs, as Decode would decide from its delivery.
func Starts(event, action string) bool {
	switch event {
	case "push":
		return true
	case "pull_request":
		return startsPull(action) || action == actionClosed
	case eventMergeGroup:
		return action == actionChecksRequested || action == v1alpha1.ActionDestroyed
	case "issue_comment", "commit_comment":
		return action == actionCreated
	case "check_run", "check_suite":
		return action == actionRerequested
	}
	return false
}

func decodePush(body []byte) (*v1alpha1.GitEventSpec, error) {
	var p payloadPush
	if err := payload.Unmarshal(body, &p, "commits"); err != nil {
		return nil, err
	}
	spec, err := p.base()
	if err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	spec.Trigger, spec.EventType, spec.Body = v1alpha1.TriggerPush, "push", p.Repository.PushedAt.identity()
	spec.BaseRef, spec.HeadRef, spec.HeadURL = p.Ref, p.Ref, p.Repository.HTMLURL
	spec.Sender, spec.SHA = p.Sender.Login, p.After
	if !provider.IsZero(p.Before) {
		spec.Before = p.Before
	}
	p.describe(spec)
	return spec, nil
}

// check returns a fault unless the push has what an event needs.
func (p *payloadPush) check() error {
	switch {
	case p.Pusher == nil:
		return payload.Missing("pusher")
	case p.Sender == nil:
		return payload.Missing("sender")
	}
	if err := payload.Check(
		payload.Text("ref", p.Ref, payload.MaxRef), payload.Text("sender.login", p.Sender.Login, payload.MaxLogin),
	); err != nil {
		return err
	}
	switch {
	case !p.tag() && !strings.HasPrefix(p.Ref, branchPrefix):
		return fault.Ignoredf(reasonUnsupportedRef, "a push to %s is to neither a branch nor a tag", p.Ref)
	case p.Deleted || (p.After != "" && provider.IsZero(p.After)):
		return fault.Ignoredf(reasonDeleted, "%s was deleted", p.Ref)
	case !provider.IsSHA(p.After):
		return payload.Missing("after")
	case !provider.IsZero(p.Before) && !provider.IsSHA(p.Before):
		return payload.Missing("before")
	}
	return nil
}

func (p *payloadPush) tag() bool { return strings.HasPrefix(p.Ref, "refs/tags/") }

// describe sets the commit. For an annotated tag, after is the tag object and head_commit the
// commit that it points to (https://github.com/buildbuddy-io/buildbuddy/pull/12752); checks need
// the commit.
func (p *payloadPush) describe(spec *v1alpha1.GitEventSpec) {
	c := p.HeadCommit
	if c == nil {
		return
	}
	if p.tag() && provider.IsSHA(c.ID) {
		spec.SHA = c.ID
	}
	if c.ID == spec.SHA {
		spec.Commit = &v1alpha1.Commit{
			Title:  text.FirstLine(c.Message, payload.MaxTitle),
			URL:    text.Bytes(text.Clean(c.URL), payload.MaxURL),
			SkipCI: provider.SkipsCI(c.Message),
		}
	}
}

func decodePullRequest(body []byte) (*v1alpha1.GitEventSpec, error) {
	var p payloadPullRequest
	if err := payload.Unmarshal(body, &p, "commits"); err != nil {
		return nil, err
	}
	if !startsPull(p.Action) && p.Action != actionClosed {
		return nil, fault.Ignoredf(reasonUnsupportedAction, "pull_request action %q starts nothing", p.Action)
	}
	spec, err := p.base()
	if err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	pr := p.PullRequest
	spec.Trigger, spec.EventType, spec.Action = v1alpha1.TriggerPullRequest, "pull_request", p.Action
	spec.Body = pr.UpdatedAt.identity()
	if p.Action == actionLabeled {
		spec.EventType = "pull_request_labeled" // PaC's name; only pipelines that read labels match it
	}
	spec.SHA, spec.BaseRef, spec.HeadRef = pr.Head.SHA, pr.Base.Ref, pr.Head.Ref
	spec.Sender, spec.Actor = pr.User.Login, p.Sender.Login
	spec.PullRequest = &v1alpha1.PullRequest{
		Number: pr.Number, Title: text.FirstLine(pr.Title, payload.MaxTitle), Author: pr.User.Login, App: pr.User.bot(),
		Draft: pr.Draft,
	}
	if pr.Head.Repo != nil {
		spec.PullRequest.HeadProjectID = pr.Head.Repo.ID
		spec.HeadURL = text.Bytes(text.Clean(pr.Head.Repo.HTMLURL), payload.MaxURL)
	}
	spec.PullRequest.Labels = labels(pr.Labels)
	if provider.IsSHA(p.Before) {
		spec.Before = p.Before
	}
	return spec, nil
}

// check returns a fault unless the pull request has what an event needs.
func (p *payloadPullRequest) check() error {
	pr := p.PullRequest
	switch {
	case pr == nil || pr.Number <= 0:
		return payload.Missing("pull_request.number")
	case pr.User == nil:
		return payload.Missing("pull_request.user")
	case pr.Head == nil || !provider.IsSHA(pr.Head.SHA):
		return payload.Missing("pull_request.head.sha")
	case pr.Base == nil || pr.Base.Repo == nil || pr.Base.Repo.ID != p.Repository.ID:
		return payload.Missing("pull_request.base.repo")
	case p.Sender == nil:
		return payload.Missing("sender")
	case pr.State == "closed" && p.Action != actionClosed: // a closed one can still get a label
		return fault.Ignoredf(reasonPullRequestClosed, "what happens to a pull request that is not open starts nothing")
	}
	return payload.Check(payload.Text("pull_request.user.login", pr.User.Login, payload.MaxLogin),
		payload.Text("sender.login", p.Sender.Login, payload.MaxLogin),
		payload.Text("pull_request.head.ref", pr.Head.Ref, payload.MaxRef),
		payload.Text("pull_request.base.ref", pr.Base.Ref, payload.MaxRef))
}

// labels returns the names that an event stores.
func labels(list []payloadLabel) []string {
	var names []string
	for _, l := range list[:min(len(list), payload.MaxLabels)] {
		names = append(names, text.Bytes(text.Clean(l.Name), payload.MaxName))
	}
	return names
}
