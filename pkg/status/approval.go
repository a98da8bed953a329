// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ApprovalID returns the external id of the check that says that a commit of a pull request waits
// for approval. All events of the commit share the id, so there is one check and each of them can
// conclude it.
func ApprovalID(event *v1alpha1.GitEvent) string { return approvalID(event, event.Spec.Subject()) }

// formerID returns the ApprovalID that the previous version used.
func formerID(event *v1alpha1.GitEvent) string {
	_, subject, _ := strings.Cut(event.Spec.Subjects(), ",")
	return approvalID(event, subject)
}

func approvalID(event *v1alpha1.GitEvent, subject string) string {
	const digits = 12 // for people: the check is looked for on the commit itself
	sha := event.Spec.SHA
	if plan := event.Status.Plan; plan != nil {
		sha = plan.HeadSHA
	}
	return "approval-" + subject + "-" + sha[:min(len(sha), digits)]
}

// pending returns the check of a commit that waits for approval. Once another event has started its
// pipelines, it returns the conclusion of that check.
func pending(in Input) Check {
	event, plan := in.Event, in.Event.Status.Plan
	if plan.StartedBy != "" {
		return approved(in)
	}
	actor := event.Spec.Actor
	if actor == event.Spec.Sender {
		actor = ""
	}
	return Check{
		Key: EventKey, Name: in.Application, ExternalID: ApprovalID(event), FormerExternalID: formerID(event), Shared: true,
		State: Queued, Title: titlePending, Summary: in.summary("", saysPending),
		Text: render("pending.md", approval{
			User: plain(event.Spec.Sender), Actor: plain(actor), Why: plain(plan.Message), Commit: plan.HeadSHA,
		}),
	}
}

// approved concludes the check of a commit that waited for approval. The conclusion is skipped,
// neither success nor failure: the runs have checks of their own. Where the check does not exist,
// none is made.
func approved(in Input) Check {
	c := Check{
		Key:              EventKey,
		Name:             in.Application,
		ExternalID:       ApprovalID(in.Event),
		FormerExternalID: formerID(in.Event),
		OnlyOpen:         true,
		State:            Completed,
		Conclusion:       Skipped,
		Title:            titleApproved,
		Summary:          in.summary("", saysApproved),
		Text:             textApproved,
	}
	if plan := in.Event.Status.Plan; plan.Approval != nil {
		c.Text = plain(plan.Approval.Says(plan.HeadSHA)) + " " + textApprovedBy
	}
	return c
}

// ending returns the conclusion of the check that waits for approval, if this event ends the wait.
func ending(in Input) []Check {
	if plan := in.Event.Status.Plan; plan == nil || !plan.EndsPending {
		return nil
	}
	return []Check{approved(in.begun(EventKey, ""))}
}
