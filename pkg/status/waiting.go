// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/runqueue"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/status/diagnosis"
)

// waiting sets the check of a run that is not created yet: what it waits for, since when, and who
// has to act.
func (in Input) waiting(c *Check, run RunState) {
	c.State, c.Title = Queued, titleUncreated
	c.Summary = in.summary(run.Run.Pipeline, saysQueued)
	c.Text = textUncreated + " " + actNone
	c.DetailsURL = "" // there is nothing to look at yet
	wait := run.Wait
	switch {
	case wait == nil:
		return
	case wait.Reason == fault.ReasonConcurrencyLimit:
		position, _, _ := strings.Cut(wait.Message, " in the queue")
		c.Title = titleQueued + since(wait) + ": " + plain(position)
		c.Text = titleQueued + since(wait) + ": " + slotsText(run) + ". " + actNone
		return
	}
	subject, cause := in.waitsFor(run)
	act := actOn(wait)
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
	return actNone
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
	place, names, found := strings.Cut(run.Wait.Message, runqueue.Have)
	if !found || run.Links.Other == nil {
		return plain(run.Wait.Message)
	}
	all := strings.Split(names, ", ")
	for i, part := range all {
		name, more, _ := strings.Cut(part, " ")
		all[i] = strings.TrimSpace(linked(run.Links, name) + " " + plain(more))
	}
	return plain(place+runqueue.Have) + " " + strings.Join(all, ", ")
}

// waitsFor returns who or what must change before the run can be created, and why it cannot be
// created now.
func (in Input) waitsFor(run RunState) (subject, cause string) {
	wait, service := run.Wait, git.ServiceName(&in.Event.Spec)
	switch wait.Reason {
	case fault.ReasonQuota:
		if name := diagnosis.QuotaName(wait.Message); name != "" {
			return "quota " + name, fmt.Sprintf(waitQuotaNamed, name)
		}
		return "quota", waitQuota
	case fault.ReasonRateLimited, fault.ReasonSecondaryRateLimited:
		if !run.Run.Unresolved || ofPlan(run) {
			return service, fmt.Sprintf(waitRateLimit, service)
		}
	case fault.ReasonCredentialsRefused, fault.ReasonPermissionMissing, fault.ReasonGitGone, fault.ReasonGitMoved,
		fault.ReasonCredentialsMissing, fault.ReasonCredentialsInvalid, fault.ReasonInstallationGone:
		return "access to " + service, fmt.Sprintf(waitAccess, service)
	}
	switch {
	case wait.Class == fault.Operator.String():
		return "your cluster administrators", correction(run)
	case run.Run.Unresolved && !ofPlan(run):
		return "what the pipeline refers to", waitReference
	}
	return transient(run, service)
}

// transient returns what is expected to work again by itself.
func transient(run RunState, service string) (subject, cause string) {
	switch run.Wait.Reason {
	case fault.ReasonCommitUnknown:
		return service, fmt.Sprintf(waitCommit, service)
	case fault.ReasonNotConfirmed:
		return service, fmt.Sprintf(waitConfirmation, service)
	case fault.ReasonGitUnavailable, fault.ReasonGitUnreachable, fault.ReasonGitConflict:
		return service, fmt.Sprintf(waitService, service)
	case fault.ReasonWebhookUnavailable, fault.ReasonWebhookFailed, fault.ReasonDenialEchoesOutage:
		if name := fault.WebhookName(run.Wait.Message); name != "" {
			return "the cluster", fmt.Sprintf(waitWebhook, name)
		}
	}
	if ofPlan(run) {
		return service, fmt.Sprintf(waitService, service)
	}
	return "the cluster", waitCluster
}

// correction returns the sentence about a problem that only an administrator of the cluster can
// solve.
func correction(run RunState) string {
	switch run.Wait.Reason {
	case fault.ReasonForbidden:
		return fmt.Sprintf(waitForbidden, run.Run.Namespace)
	case fault.ReasonSecretMissing:
		return waitKey
	case fault.ReasonNamespaceMissing:
		return fmt.Sprintf(waitNamespace, run.Run.Namespace)
	}
	return waitOperator
}
