// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

const (
	eventMergeGroup       = "merge_group"
	actionChecksRequested = "checks_requested"
)

// payloadMergeGroup is a commit that the merge queue has made of its base branch and one or more
// pull requests (https://docs.github.com/webhooks/webhook-events-and-payloads#merge_group).
type payloadMergeGroup struct {
	payloadCommon
	MergeGroup *struct {
		HeadSHA    string `json:"head_sha"`
		HeadRef    string `json:"head_ref"`
		BaseSHA    string `json:"base_sha"`
		BaseRef    string `json:"base_ref"`
		HeadCommit *struct {
			ID        string `json:"id"`
			Message   string `json:"message"`
			Timestamp moment `json:"timestamp"`
		} `json:"head_commit"`
	} `json:"merge_group"`
}

// decodeMergeGroup decodes the request for checks, and the end of the group. Both have the time of
// the group's commit, so the end cancels what the request has started.
func decodeMergeGroup(body []byte) (*v1alpha1.GitEventSpec, error) {
	var p payloadMergeGroup
	if err := payload.Unmarshal(body, &p); err != nil {
		return nil, err
	}
	if !Starts(eventMergeGroup, p.Action) {
		return nil, fault.Ignoredf(reasonUnsupportedAction, "merge_group action %q starts nothing", p.Action)
	}
	spec, err := p.base()
	if err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	group := p.MergeGroup
	spec.Trigger, spec.EventType, spec.Action = v1alpha1.TriggerMergeGroup, eventMergeGroup, p.Action
	spec.SHA, spec.Before, spec.Sender = group.HeadSHA, group.BaseSHA, p.Sender.Login
	spec.BaseRef = strings.TrimPrefix(group.BaseRef, branchPrefix)
	spec.HeadRef = strings.TrimPrefix(group.HeadRef, branchPrefix)
	spec.HeadURL = p.Repository.HTMLURL
	if commit := group.HeadCommit; commit != nil && commit.ID == group.HeadSHA {
		spec.Body = commit.Timestamp.identity()
		spec.Commit = &v1alpha1.Commit{
			Title: text.FirstLine(commit.Message, payload.MaxTitle),
			URL:   text.Bytes(p.Repository.HTMLURL+"/commit/"+group.HeadSHA, payload.MaxURL),
		}
	}
	return spec, nil
}

// check returns a fault unless the merge group has what an event needs.
func (p *payloadMergeGroup) check() error {
	group := p.MergeGroup
	switch {
	case group == nil || !provider.IsSHA(group.HeadSHA):
		return payload.Missing("merge_group.head_sha")
	case !provider.IsSHA(group.BaseSHA):
		return payload.Missing("merge_group.base_sha")
	case !strings.HasPrefix(group.HeadRef, git.MergeQueues):
		return payload.Missing("merge_group.head_ref")
	case !strings.HasPrefix(group.BaseRef, branchPrefix):
		return payload.Missing("merge_group.base_ref")
	case p.Sender == nil:
		return payload.Missing("sender")
	}
	return payload.Check(payload.Text("merge_group.head_ref", group.HeadRef, payload.MaxRef),
		payload.Text("merge_group.base_ref", group.BaseRef, payload.MaxRef),
		payload.Text("sender.login", p.Sender.Login, payload.MaxLogin))
}
