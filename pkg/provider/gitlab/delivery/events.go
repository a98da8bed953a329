// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// The event types of Pipelines-as-Code. Only pipelines that read labels match TypeLabels.
const (
	typePush         = "push"
	typeTag          = "Tag Push"
	typeMergeRequest = "Merge Request"
	TypeLabels       = "pull_request_labeled"
)

func decodePush(event string, body []byte) (*v1alpha1.GitEventSpec, error) {
	kind, eventType, prefix := "push", typePush, "refs/heads/"
	if event == eventTag {
		kind, eventType, prefix = "tag_push", typeTag, "refs/tags/"
	}
	var p payloadPush
	if err := payload.Unmarshal(body, &p, "commits"); err != nil {
		return nil, err
	}
	spec, err := p.base(kind)
	if err != nil {
		return nil, err
	}
	if err := p.check(prefix); err != nil {
		return nil, err
	}
	spec.Trigger, spec.EventType = v1alpha1.TriggerPush, eventType
	spec.BaseRef, spec.HeadRef, spec.HeadURL = p.Ref, p.Ref, p.Project.WebURL
	spec.Sender, spec.SHA = p.Username, p.head()
	if !provider.IsZero(p.Before) {
		spec.Before = p.Before
	}
	var head payloadCommit
	if err := payload.Element(body, "commits", "id", spec.SHA, &head); err != nil {
		return nil, payload.Missing("commits")
	}
	if head.ID != "" {
		spec.Commit = head.describe()
	}
	return spec, nil
}

// head returns the commit to run and to report on. For an annotated tag, after is the tag object
// and checkout_sha the commit that it points to. A new branch, or a branch that was reset, brings
// no new commits; its commit runs anyway.
func (p *payloadPush) head() string {
	if provider.IsSHA(p.CheckoutSHA) {
		return p.CheckoutSHA
	}
	return p.After
}

// check returns a fault unless the push has what an event needs.
func (p *payloadPush) check(prefix string) error {
	err := payload.Check(payload.Text("ref", p.Ref, payload.MaxRef),
		payload.Text("user_username", p.Username, payload.MaxLogin))
	if err != nil {
		return err
	}
	switch {
	case !ValidName(p.Username):
		return payload.Missing("user_username")
	case p.ProjectID != 0 && p.ProjectID != p.Project.ID:
		return payload.Missing("project_id")
	case !strings.HasPrefix(p.Ref, prefix):
		return fault.Ignoredf(reasonUnsupportedRef, "a push to %s is to neither a branch nor a tag", p.Ref)
	case p.After != "" && provider.IsZero(p.After):
		return fault.Ignoredf(reasonDeleted, "%s was deleted", p.Ref)
	case !provider.IsSHA(p.After):
		return payload.Missing("after")
	case !provider.IsZero(p.Before) && !provider.IsSHA(p.Before):
		return payload.Missing("before")
	}
	return nil
}

func (c payloadCommit) describe() *v1alpha1.Commit {
	return Commit(c.Message, c.URL)
}

func decodeMergeRequest(body []byte) (*v1alpha1.GitEventSpec, error) {
	var p payloadMergeRequest
	if err := payload.Unmarshal(body, &p); err != nil {
		return nil, err
	}
	spec, err := p.base("merge_request")
	if err != nil {
		return nil, err
	}
	eventType, err := p.eventType()
	if err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	mr := p.Attributes
	mr.describe(spec, p.User, p.Labels)
	spec.Actor, spec.HappenedAt = p.User.Username, mr.UpdatedAt.time()
	spec.EventType, spec.Action, spec.SHA, spec.Commit = eventType, mr.Action, mr.LastCommit.ID, mr.LastCommit.describe()
	if provider.IsSHA(mr.OldRev) {
		spec.Before = mr.OldRev
	}
	return spec, nil
}

// describe fills the fields that all events of a merge request have, except the commit.
func (mr *payloadAttributes) describe(spec *v1alpha1.GitEventSpec, user *payloadUser, labels []payloadLabel) {
	spec.Trigger, spec.Sender = v1alpha1.TriggerPullRequest, user.Username
	spec.BaseRef, spec.HeadRef = mr.TargetBranch, mr.SourceBranch
	spec.PullRequest = &v1alpha1.PullRequest{
		Number:   mr.IID,
		Title:    text.FirstLine(mr.Title, payload.MaxTitle),
		Author:   mr.author(user),
		AuthorID: mr.AuthorID,
		Draft:    mr.Draft || mr.WorkInProgress,
	}
	if mr.Source != nil {
		spec.PullRequest.HeadProjectID, spec.HeadURL = mr.SourceProjectID, text.Bytes(text.Clean(mr.Source.WebURL),
			payload.MaxURL)
	}
	for _, l := range labels[:min(len(labels), payload.MaxLabels)] {
		spec.PullRequest.Labels = append(spec.PullRequest.Labels, text.Bytes(text.Clean(l.Title), payload.MaxName))
	}
}

// author returns the author of the merge request: the username if the author acted, else the id,
// because the payload has no more. The acting user becomes the event's actor, and is checked in
// addition to the author: a maintainer who sets a label on an untrusted user's merge request has
// not approved it.
func (mr *payloadAttributes) author(user *payloadUser) string {
	if user.ID == mr.AuthorID {
		return user.Username
	}
	return IDPrefix + strconv.FormatInt(mr.AuthorID, 10)
}

// eventType returns the event type, or why the event starts nothing.
func (p *payloadMergeRequest) eventType() (string, error) {
	mr := p.Attributes
	if mr == nil {
		return "", payload.Missing("object_attributes")
	}
	switch {
	case mr.Action == "close" || mr.Action == "merge":
		return typeMergeRequest, nil
	case !slices.Contains([]string{"open", "reopen", "update"}, mr.Action):
		return "", fault.Ignoredf(reasonUnsupportedAction, "merge request action %q starts nothing", mr.Action)
	case mr.State == "closed" || mr.State == "merged":
		return "", fault.Ignoredf(reasonNotOpen, "the merge request is %s", mr.State)
	case mr.Action != "update" || mr.OldRev != "":
		return typeMergeRequest, nil
	}
	return p.updateType()
}

// updateType returns the event type of an update without a push: the end of a draft, or a new
// label, whatever else changed at the same time. One update is one event: pipelines that read
// labels also run at the end of a draft.
func (p *payloadMergeRequest) updateType() (string, error) {
	ready, err := p.becomesReady()
	if err != nil {
		return "", err
	}
	if ready {
		return typeMergeRequest, nil
	}
	added, err := p.addsLabels()
	if err != nil {
		return "", err
	}
	if added {
		return TypeLabels, nil
	}
	return "", fault.Ignoredf(reasonUnsupportedAction,
		"an update of a merge request without new commits or labels starts nothing, unless it was a draft before")
}

// changed is the change of a field by an update. Without the field both values are zero.
type changed[T any] struct {
	Previous T `json:"previous"`
	Current  T `json:"current"`
}

func readChange[T any](changes map[string]json.RawMessage, field string) (c changed[T], err error) {
	if raw := changes[field]; raw != nil && json.Unmarshal(raw, &c) != nil {
		err = payload.Missing("changes." + field)
	}
	return c, err
}

// draftTitle matches the title of a draft
// (https://docs.gitlab.com/user/project/merge_requests/drafts/).
var draftTitle = regexp.MustCompile(`^(?i)(\[draft\]|\(draft\)|draft:)`)

// becomesReady reports whether the merge request was a draft before. Servers before
// gitlab-org/gitlab!126899 only send the title.
func (p *payloadMergeRequest) becomesReady() (bool, error) {
	if p.Changes["draft"] != nil {
		draft, err := readChange[bool](p.Changes, "draft")
		return draft.Previous && !draft.Current, err
	}
	title, err := readChange[string](p.Changes, "title")
	return draftTitle.MatchString(title.Previous) && !draftTitle.MatchString(title.Current), err
}

func (p *payloadMergeRequest) addsLabels() (bool, error) {
	labels, err := readChange[[]payloadLabel](p.Changes, "labels")
	return slices.ContainsFunc(labels.Current, func(l payloadLabel) bool {
		return !slices.ContainsFunc(labels.Previous, func(old payloadLabel) bool { return old.Title == l.Title })
	}), err
}

// check returns a fault unless the merge request has what an event needs.
func (p *payloadMergeRequest) check() error {
	mr := p.Attributes
	if err := mr.check("object_attributes", p.payloadCommon, p.User); err != nil {
		return err
	}
	switch {
	case mr.LastCommit == nil:
		return fault.Ignoredf(reasonNoCommits, "the merge request has no commits")
	case !provider.IsSHA(mr.LastCommit.ID):
		return payload.Missing("object_attributes.last_commit.id")
	}
	return nil
}

// check returns a fault unless a merge request, at a place in the body, has what all its events
// need.
func (mr *payloadAttributes) check(at string, p payloadCommon, user *payloadUser) error {
	switch {
	case mr.IID <= 0:
		return payload.Missing(at + ".iid")
	case mr.AuthorID <= 0:
		return payload.Missing(at + ".author_id")
	case mr.TargetProjectID != p.Project.ID:
		return payload.Missing(at + ".target_project_id")
	case mr.Source != nil && mr.SourceProjectID <= 0:
		return payload.Missing(at + ".source_project_id")
	case user == nil:
		return payload.Missing("user")
	case user.Username != "" && !ValidName(user.Username):
		return payload.Missing("user.username")
	}
	return payload.Check(payload.Text("user.username", user.Username, payload.MaxLogin),
		payload.Text(at+".source_branch", mr.SourceBranch, payload.MaxRef),
		payload.Text(at+".target_branch", mr.TargetBranch, payload.MaxRef))
}

// Commit returns a commit's description for people.
func Commit(message, url string) *v1alpha1.Commit {
	return &v1alpha1.Commit{
		Title:  text.FirstLine(message, payload.MaxTitle),
		URL:    text.Bytes(text.Clean(url), payload.MaxURL),
		SkipCI: provider.SkipsCI(message),
	}
}
