// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ApprovalID is the external id of the check that says that a commit of a pull request waits for
// approval. All events of that commit have the same, so that the check is one, and each of them can
// end it.
func ApprovalID(event *v1alpha1.GitEvent) string { return approvalID(event, event.Spec.Subject()) }

// formerID is the ApprovalID of the version before.
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

// pending is what a commit shows that nobody who may has started; once another event has, the end
// of that.
func pending(in Input) Check {
	event, plan := in.Event, in.Event.Status.Plan
	if plan.StartedBy != "" {
		return approved(in)
	}
	return Check{
		Key: EventKey, Name: in.Application, ExternalID: ApprovalID(event), FormerExternalID: formerID(event), Shared: true,
		State: Queued, Title: titlePending, Summary: in.summary("", "is waiting for approval."),
		Text: render("pending.md", approval{
			User: plain(
				event.Spec.Sender,
			),
			Trigger: plain(string(event.Spec.Trigger)),
			Why:     plain(plan.Message),
			Commit:  plan.HeadSHA,
		}),
	}
}

// approved ends the check that says that a commit waits for approval. It says nothing of the runs,
// which have checks of their own: so it is skipped, which is neither success nor failure. It makes
// no check where there is none.
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
		Summary:          in.summary("", "waits for no approval any more."),
		Text:             "Somebody who may has started the pipelines of this commit. Their own checks tell how they end.",
	}
	if plan := in.Event.Status.Plan; plan.Approval != nil {
		c.Text = plain(
			plan.Approval.Says(plan.HeadSHA),
		) + " The checks of its pipelines tell how they end; without any, no pipeline is for it."
	}
	return c
}

// ending is the end of the check that waits for approval, if there may be one that is over with
// this event.
func ending(in Input) []Check {
	if plan := in.Event.Status.Plan; plan == nil || !plan.EndsPending {
		return nil
	}
	return []Check{approved(in.begun(EventKey, ""))}
}
