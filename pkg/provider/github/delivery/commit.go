// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// decodeCommitComment decodes a comment on a commit. The payload has only the commit's id. It has
// no branch, and does not say whether the commit is a fork's, whose commits GitHub shows as if they
// were the repository's.
func decodeCommitComment(body []byte) (*v1alpha1.GitEventSpec, error) {
	var p payloadCommitComment
	if err := payload.Unmarshal(body, &p); err != nil {
		return nil, err
	}
	if p.Action != actionCreated {
		return nil, fault.Ignoredf(reasonUnsupportedAction, "commit_comment action %q starts nothing", p.Action)
	}
	spec, err := p.base()
	if err != nil {
		return nil, err
	}
	if err := p.Comment.check(p.Sender); err != nil {
		return nil, err
	}
	if !provider.IsSHA(p.Comment.CommitID) {
		return nil, payload.Missing("comment.commit_id")
	}
	if err := p.Comment.silent(p.Sender); err != nil {
		return nil, err
	}
	spec.Trigger, spec.EventType = v1alpha1.TriggerPush, eventComment
	spec.Action, spec.Sender = p.Action, p.Comment.User.Login
	spec.SHA, spec.HeadURL = p.Comment.CommitID, p.Repository.HTMLURL
	spec.Comment = &v1alpha1.Comment{ID: p.Comment.ID, Body: text.Clean(p.Comment.Body)}
	spec.Body = p.Comment.CreatedAt.identity()
	return spec, nil
}
