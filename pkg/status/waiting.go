// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/slots"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

// waiting sets the check of a run that is not created yet: what it waits for, since when, and who
// has to act.
func (in Input) waiting(c *Check, run RunState) {
	c.State, c.Title = Queued, titleUncreated
	c.Summary = in.summary(run.Run.Pipeline, saysQueued)
	c.Text = textUncreated + " " + actNobody
	c.DetailsURL = "" // there is nothing to look at yet
	wait := run.Wait
	switch {
	case wait == nil:
		return
	case wait.Reason == fault.ReasonConcurrencyLimit:
		position, _, _ := strings.Cut(wait.Message, " in the queue")
		c.Title = titleQueued + since(wait) + ": " + plain(position)
		c.Text = titleQueued + since(wait) + ": " + slotsText(run) + ". " + actNobody
		return
	}
	subject, cause, act := in.cause(run)
	c.Title = fmt.Sprintf(titleWaiting, subject) + since(wait)
	if act == actAdministrators {
		cause += " " + waitNotAuthor
	}
	c.Words = cause + " " + act
	c.Text = plain(c.Title) + ". " + plain(c.Words)
	if ofPlan(run) {
		c.Text += " " + textUndecided
	}
	c.Text += "\n\n" + details(wait)
}

// details folds the reason and the message of a wait, which are for the people who can act.
func details(wait *v1alpha1.Wait) string {
	return "<details><summary>" + fmt.Sprintf(textDetails, line(wait.Reason)) + "</summary>\n\n" +
		code(wait.Message) + "\n\n</details>"
}

// actOn returns the sentence about who has to act on a wait.
func actOn(wait *v1alpha1.Wait) string {
	if wait.Class == fault.Operator.String() {
		return actAdministrators
	}
	return actNobody
}

// ofPlan reports whether a run is a placeholder whose check shows what planning waits for.
func ofPlan(run RunState) bool {
	return run.Run.Unresolved && run.Run.Pipeline == pipelinesascode.Definitions
}

// since returns when a wait began. It does not say how long ago that was, nor when the next attempt
// is: a check with changing words would be sent at each retry.
func since(wait *v1alpha1.Wait) string {
	if wait.Since.IsZero() {
		return ""
	}
	return wait.Since.UTC().Format(" since 15:04 UTC on 2 January")
}

// slotsText returns the run's position in the queue, with links to the runs that have the slots.
func slotsText(run RunState) string {
	place, names, found := strings.Cut(run.Wait.Message, slots.Have)
	if !found || run.Links.Other == nil {
		return plain(run.Wait.Message)
	}
	all := strings.Split(names, ", ")
	for i, part := range all {
		name, more, _ := strings.Cut(part, " ")
		all[i] = strings.TrimSpace(fmt.Sprintf("[%s](%s) %s", plain(name), target(run.Links.Other(name)), plain(more)))
	}
	return plain(place+slots.Have) + " " + strings.Join(all, ", ")
}

// cause returns who or what must change before the run can be created, why it cannot be created
// now, and who has to act.
func (in Input) cause(run RunState) (subject, cause, act string) {
	wait, service := run.Wait, git.ServiceName(&in.Event.Spec)
	act = actOn(wait)
	switch wait.Reason {
	case fault.ReasonQuota:
		if name := quotaName(wait.Message); name != "" {
			return "quota " + name, fmt.Sprintf(waitQuotaNamed, name), act
		}
		return "quota", waitQuota, act
	case fault.ReasonRateLimited, fault.ReasonSecondaryRateLimited:
		if !run.Run.Unresolved || ofPlan(run) {
			return service, fmt.Sprintf(waitRateLimit, service), act
		}
	case fault.ReasonCredentialsRefused, fault.ReasonPermissionMissing, fault.ReasonGitGone, fault.ReasonGitMoved,
		fault.ReasonCredentialsMissing, fault.ReasonCredentialsInvalid, fault.ReasonInstallationGone:
		return "access to " + service, fmt.Sprintf(waitAccess, service), act
	}
	operator := wait.Class == fault.Operator.String()
	switch {
	case operator:
		return waitingForAdministrators(run, act)
	case run.Run.Unresolved && !ofPlan(run):
		return "what the pipeline refers to", waitReference, act
	}
	switch wait.Reason {
	case fault.ReasonCommitUnknown:
		return service, fmt.Sprintf(waitCommit, service), act
	case fault.ReasonNotConfirmed:
		return service, fmt.Sprintf(waitConfirmation, service), act
	case fault.ReasonGitUnavailable, fault.ReasonGitUnreachable, fault.ReasonGitConflict:
		return service, fmt.Sprintf(waitService, service), act
	case fault.ReasonWebhookUnavailable, fault.ReasonWebhookFailed, fault.ReasonDenialEchoesOutage:
		if name := fault.WebhookName(wait.Message); name != "" {
			return "the cluster", fmt.Sprintf(waitWebhook, name), act
		}
	}
	if ofPlan(run) {
		return service, fmt.Sprintf(waitService, service), act
	}
	return "the cluster", waitCluster, act
}

// waitingForAdministrators returns what only people with access to the cluster can correct.
func waitingForAdministrators(run RunState, act string) (subject, cause, then string) {
	const subjectAdministrators = "your cluster administrators"
	switch run.Wait.Reason {
	case fault.ReasonForbidden:
		return subjectAdministrators, fmt.Sprintf(waitForbidden, run.Run.Namespace), act
	case fault.ReasonSecretMissing:
		return subjectAdministrators, waitSecret, act
	case fault.ReasonNamespaceMissing:
		return subjectAdministrators, fmt.Sprintf(waitNamespace, run.Run.Namespace), act
	}
	return subjectAdministrators, waitOperator, act
}
