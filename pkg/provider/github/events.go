// SPDX-License-Identifier: Apache-2.0

package github

import (
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// actionLabeled is a label that was added to a pull request; it runs the head that is there already.
const actionLabeled = "labeled"

func decodePush(body []byte) (*v1alpha1.GitEventSpec, error) {
	var p payloadPush
	if err := unmarshal(body, &p); err != nil {
		return nil, err
	}
	spec, err := p.base()
	if err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	spec.Trigger, spec.EventType = v1alpha1.TriggerPush, "push"
	spec.BaseRef, spec.HeadRef, spec.HeadURL = p.Ref, p.Ref, p.Repository.HTMLURL
	spec.Sender, spec.SHA = p.Sender.Login, p.After
	if !zero(p.Before) {
		spec.Before = p.Before
	}
	p.describe(spec)
	return spec, nil
}

// check tells whether the push has what an event needs, and is one.
func (p *payloadPush) check() error {
	switch {
	case p.Pusher == nil:
		return missing("pusher")
	case p.Sender == nil:
		return missing("sender")
	}
	if err := fields(field{"ref", p.Ref, maxRef}, field{"sender.login", p.Sender.Login, maxLogin}); err != nil {
		return err
	}
	switch {
	case !p.tag() && !strings.HasPrefix(p.Ref, "refs/heads/"):
		return fault.Ignoredf("UnsupportedRef", "a push to %s is to neither a branch nor a tag", p.Ref)
	case p.Deleted || (p.After != "" && zero(p.After)):
		return fault.Ignoredf("Deleted", "%s was deleted", p.Ref)
	case !shaPattern.MatchString(p.After):
		return missing("after")
	case !zero(p.Before) && !shaPattern.MatchString(p.Before):
		return missing("before")
	}
	return nil
}

func (p *payloadPush) tag() bool { return strings.HasPrefix(p.Ref, "refs/tags/") }

// describe takes what the payload says of the commit. For an annotated tag, after is the tag object and head_commit
// the commit it points to (https://github.com/buildbuddy-io/buildbuddy/pull/12752); checks need the commit.
func (p *payloadPush) describe(spec *v1alpha1.GitEventSpec) {
	c := p.HeadCommit
	if c == nil {
		return
	}
	if p.tag() && shaPattern.MatchString(c.ID) {
		spec.SHA = c.ID
	}
	if c.ID == spec.SHA {
		spec.Commit = &v1alpha1.Commit{Title: title(c.Message), URL: boundary(clean(c.URL), maxURL), SkipCI: provider.SkipsCI(c.Message)}
	}
}

func decodePullRequest(body []byte) (*v1alpha1.GitEventSpec, error) {
	var p payloadPullRequest
	if err := unmarshal(body, &p); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"opened", "synchronize", "reopened", "ready_for_review", actionLabeled}, p.Action) {
		return nil, fault.Ignoredf("UnsupportedAction", "pull_request action %q starts nothing", p.Action)
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
	if p.Action == actionLabeled {
		spec.EventType = "pull_request_labeled" // PaC's name: only pipelines that read labels react to it
	}
	spec.SHA, spec.BaseRef, spec.HeadRef, spec.Sender = pr.Head.SHA, pr.Base.Ref, pr.Head.Ref, pr.User.Login
	spec.PullRequest = &v1alpha1.PullRequest{
		Number: pr.Number, Title: title(pr.Title), Author: pr.User.Login, Draft: pr.Draft,
	}
	if pr.Head.Repo != nil {
		spec.PullRequest.HeadProjectID, spec.HeadURL = pr.Head.Repo.ID, boundary(clean(pr.Head.Repo.HTMLURL), maxURL)
	}
	spec.PullRequest.Labels = labels(pr.Labels)
	return spec, nil
}

// check tells whether the pull request has what an event needs.
func (p *payloadPullRequest) check() error {
	pr := p.PullRequest
	switch {
	case pr == nil || pr.Number <= 0:
		return missing("pull_request.number")
	case pr.User == nil:
		return missing("pull_request.user")
	case pr.Head == nil || !shaPattern.MatchString(pr.Head.SHA):
		return missing("pull_request.head.sha")
	case pr.Base == nil || pr.Base.Repo == nil || pr.Base.Repo.ID != p.Repository.ID:
		return missing("pull_request.base.repo")
	}
	return fields(field{"pull_request.user.login", pr.User.Login, maxLogin},
		field{"pull_request.head.ref", pr.Head.Ref, maxRef}, field{"pull_request.base.ref", pr.Base.Ref, maxRef})
}

// labels are the names that an event holds.
func labels(list []payloadLabel) []string {
	var names []string
	for _, l := range list[:min(len(list), maxLabels)] {
		names = append(names, boundary(clean(l.Name), maxName))
	}
	return names
}

// zero tells whether a SHA stands for "nothing".
func zero(sha string) bool { return strings.Trim(sha, "0") == "" }

// title is a message's first line, cut to what an event holds.
func title(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(clean(message)), "\n")
	return boundary(strings.TrimSpace(line), maxEventTitle)
}
