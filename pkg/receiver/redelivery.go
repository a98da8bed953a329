// SPDX-License-Identifier: Apache-2.0

package receiver

import "github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"

// verdict says what an existing GitEvent means for a delivery that would have its name.
type verdict int

const (
	// alreadyRecorded: it is the record of this delivery.
	alreadyRecorded verdict = iota
	// processAgain: it is the record of this delivery, ended without runs, and may end otherwise now.
	processAgain
	// foreign: it is the record of something else.
	foreign
)

// judge compares an existing GitEvent with a delivery (architecture, "Redelivery").
//
// The delivery is the same when service, body and, unless the body alone tells, delivery key are: what differs between honest
// copies (ReceivedAt, and the Repository when its URL was claimed anew in between) does not count. What GitLab sends again under a
// key has no e-mail addresses in its body any more, so there it is the key and what happened.
func judge(existing *v1alpha1.GitEvent, spec *v1alpha1.GitEventSpec) verdict {
	have := &existing.Spec
	if have.Provider != spec.Provider || have.Host != spec.Host {
		return foreign
	}
	if spec.Body == nil && have.DeliveryKey != spec.DeliveryKey {
		return foreign
	}
	if have.Payload.Digest != spec.Payload.Digest && (spec.Body != nil || happeningOf(have) != happeningOf(spec)) {
		return foreign
	}
	if existing.MayRunAgain() {
		return processAgain
	}
	return alreadyRecorded
}

// happening is what an event is of, whatever else its body says.
type happening struct {
	trigger                            v1alpha1.Trigger
	eventType, action                  string
	project, pull, comment             int64
	url, sha, before, baseRef, headRef string
}

func happeningOf(spec *v1alpha1.GitEventSpec) happening {
	h := happening{
		trigger: spec.Trigger, eventType: spec.EventType, action: spec.Action, project: spec.Project.ID,
		url: spec.Project.URL, sha: spec.SHA, before: spec.Before, baseRef: spec.BaseRef, headRef: spec.HeadRef,
	}
	if spec.PullRequest != nil {
		h.pull = spec.PullRequest.Number
	}
	if spec.Comment != nil {
		h.comment = spec.Comment.ID
	}
	return h
}
