// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestOutcome(t *testing.T) {
	var (
		succeeded = v1alpha1.Run{UID: "1", Result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeSucceeded}}
		failed    = v1alpha1.Run{UID: "1", Result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeFailed}}
		cancelled = v1alpha1.Run{UID: "1", Result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled}}
		deleted   = v1alpha1.Run{UID: "1", Result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeDeleted}}
		unknown   = v1alpha1.Run{UID: "1", Result: &v1alpha1.Result{Outcome: "Teleported"}}
		refused   = v1alpha1.Run{Refused: &v1alpha1.Refusal{Reason: "BadYAML"}}
		running   = v1alpha1.Run{UID: "1"}
		uncreated = v1alpha1.Run{}
	)
	waits := func(pairs ...string) (waits []v1alpha1.Wait) {
		for i := 0; i < len(pairs); i += 2 {
			waits = append(waits, v1alpha1.Wait{Step: pairs[i], Reason: pairs[i+1]})
		}
		return waits
	}
	planned := func(runs ...v1alpha1.Run) v1alpha1.GitEventStatus {
		return v1alpha1.GitEventStatus{
			Disposition: v1alpha1.DispositionRuns, Plan: &v1alpha1.Plan{Reason: "Selected"}, Runs: runs,
		}
	}
	ended := func(disposition v1alpha1.Disposition, reason string) v1alpha1.GitEventStatus {
		return v1alpha1.GitEventStatus{Disposition: disposition, Plan: &v1alpha1.Plan{Reason: reason}}
	}
	with := func(s v1alpha1.GitEventStatus, waits []v1alpha1.Wait) v1alpha1.GitEventStatus {
		s.Waits = waits
		return s
	}
	open := planned(running)
	open.Plan.Decisions = []v1alpha1.Decision{{Open: true}}
	openEnded := planned(succeeded)
	openEnded.Plan.Decisions = open.Plan.Decisions

	for name, tt := range map[string]struct {
		status v1alpha1.GitEventStatus
		want   string
	}{
		"nothing is known yet": {v1alpha1.GitEventStatus{}, "Planning"},
		"the plan waits": {
			with(v1alpha1.GitEventStatus{}, waits("plan", "GitServiceUnavailable")), "Waiting: GitServiceUnavailable",
		},
		"planning panics": {
			with(v1alpha1.GitEventStatus{}, waits("plan", "Panic")), "Waiting: Panic",
		},
		"no pipeline is for it":      {ended(v1alpha1.DispositionIgnored, "NoMatch"), "Ignored: NoMatch"},
		"the author asked for no CI": {ended(v1alpha1.DispositionSkipped, "SkipCI"), "Skipped"},
		"somebody has to approve it": {
			ended(v1alpha1.DispositionPending, "PendingApproval"), "PendingApproval",
		},
		"another commit took its place": {ended(v1alpha1.DispositionSuperseded, "Superseded"), "Superseded"},
		"it cannot be served": {
			ended(v1alpha1.DispositionRefused, "RepositoryGone"), "Refused: RepositoryGone",
		},
		"a disposition of a newer version": {ended("Teleported", "Beam"), "Teleported"},
		"planned, nothing created":         {planned(uncreated), "Creating"},
		"its run waits to be created": {
			with(planned(uncreated), waits("create/a", "QuotaExceeded")), "Waiting: QuotaExceeded",
		},
		"its run runs":        {planned(running), "Running"},
		"its run succeeded":   {planned(succeeded), "Succeeded"},
		"its run failed":      {planned(failed), "Failed"},
		"its run was refused": {planned(refused), "Failed"},
		"its run exists although a create was refused": {
			planned(v1alpha1.Run{UID: "1", Refused: refused.Refused}), "Running",
		},
		"its run was cancelled":                    {planned(cancelled), "Cancelled"},
		"its run was deleted, as its check says":   {planned(deleted), "Cancelled"},
		"its run ended in a newer version's words": {planned(unknown), "Running"},
		"some of several run":                      {planned(succeeded, running, uncreated), "Running"},
		"some of several are not created":          {planned(succeeded, uncreated), "Creating"},
		"one of several failed, before all ended":  {planned(succeeded, failed, running), "Failed: 1 of 3"},
		"one of several failed while another waits": {
			with(planned(failed, uncreated), waits("create/b", "QuotaExceeded")), "Failed: 1 of 2",
		},
		"all of several failed":        {planned(failed, refused), "Failed: 2 of 2"},
		"one of several was cancelled": {planned(succeeded, cancelled), "Cancelled: 1 of 2"},
		"all of several succeeded":     {planned(succeeded, succeeded), "Succeeded"},
		"one runs and another waits": {
			with(planned(running, uncreated), waits("create/b", "QuotaExceeded")), "Waiting: QuotaExceeded",
		},
		"one pipeline runs and another is undecided": {
			with(open, waits("plan", "GitServiceUnavailable")), "Waiting: GitServiceUnavailable",
		},
		"what is undecided is tried now":      {open, "Running"},
		"all ended but for what is undecided": {openEnded, "Planning"},
		"the first of several waits": {
			with(planned(uncreated, uncreated), waits("create/b", "B", "create/a", "A")), "Waiting: B",
		},
		"a panic outweighs what else it waits for": {
			with(planned(running, uncreated), waits("create/b", "QuotaExceeded", "reconcile", "Panic")), "Waiting: Panic",
		},
		"the verdict is not reported": {
			with(planned(failed), waits("report", "RateLimited")), "Failed, not reported: RateLimited",
		},
		"what runs is not reported": {
			with(planned(running), waits("report", "RateLimited")), "Running, not reported: RateLimited",
		},
		"the approval is not asked for": {with(ended(v1alpha1.DispositionPending, "PendingApproval"),
			waits("report", "RateLimited")), "PendingApproval, not reported: RateLimited"},
		"what waits beside that says only why": {
			with(planned(uncreated), waits("report", "RateLimited", "create/a", "QuotaExceeded")), "Waiting: QuotaExceeded",
		},
		"nothing waits for metadata and tokens": {
			with(planned(running), waits("annotate", "AdmissionWebhookUnavailable", "renew", "Timeout")), "Running",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Summary(&tt.status); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
