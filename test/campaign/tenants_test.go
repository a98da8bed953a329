// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/planning"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

// at is a project of which only the path is known.
type at struct {
	project
	path string
}

func (p at) checksAt() []string { return []string{p.path} }

// Effects for the wrong tenant, runs without a reason and missing runs are reported; correct
// evidence is not.
func TestWrongOutcomesAndTenantsAreReported(t *testing.T) {
	type world struct {
		*invariants.Evidence
		run    *v1alpha1.Run
		wish   map[string]outcome
		counts map[string]int
		of     *repository
	}
	for _, c := range []struct {
		what  string
		want  []string // invariants
		spoil func(w world)
	}{
		{"nothing is wrong", nil, func(world) {}},
		{"a run is planned in another tenant's namespace", []string{wrongTenants},
			func(w world) { w.run.Namespace = "of-umbra" }},
		{"a run is made in another tenant's namespace", []string{wrongTenants},
			func(w world) { w.Live[0].Namespace = "of-umbra" }},
		{"a check is written at another tenant's project", []string{wrongTenants},
			func(w world) { w.Writes[0].Repository = "umbra/app" }},
		{"a pipeline of a push is forgotten", []string{"I-1"}, func(w world) { w.counts["d"] = 2 }},
		{"a push was superseded", nil,
			func(w world) { w.counts["d"], w.Events[0].Status.Disposition = 2, v1alpha1.DispositionSuperseded }},
		{"a push is ignored", []string{"I-1"}, func(w world) {
			w.Events[0].Status, w.Live, w.Writes = v1alpha1.GitEventStatus{Disposition: v1alpha1.DispositionIgnored}, nil, nil
		}},
		{"a push is refused", []string{"I-1"}, func(w world) {
			w.Events[0].Status, w.Live, w.Writes = v1alpha1.GitEventStatus{Disposition: v1alpha1.DispositionRefused}, nil, nil
		}},
		{"a push is parked, because processes were killed while they planned it", nil, func(w world) {
			w.Events[0].Status = v1alpha1.GitEventStatus{
				Disposition: v1alpha1.DispositionRefused, Plan: &v1alpha1.Plan{Reason: planning.ReasonParked},
			}
			w.Live, w.Writes = nil, nil
		}},
		{"an untrusted user cancels", []string{"I-1"}, func(w world) {
			w.wish["d"], w.Events[0].Status, w.Live, w.Writes = noEffect,
				v1alpha1.GitEventStatus{Disposition: v1alpha1.DispositionCancels}, nil, nil
		}},
		{"somebody who may cancels", nil, func(w world) {
			w.wish["d"], w.Events[0].Status, w.Live, w.Writes = nothing,
				v1alpha1.GitEventStatus{Disposition: v1alpha1.DispositionCancels}, nil, nil
		}},
		{"a push has no record", []string{"I-1"}, func(w world) { w.Events = nil }},
		{"a push has no record, and was refused", nil, func(w world) { w.Events, w.Deliveries[0].Code = nil, 503 }},
		{"a push has no record, and GitHub was not asked for it again", []string{"I-1"}, func(w world) {
			w.of.service, w.Events, w.Deliveries[0].Code = onGitHub, nil, 503
		}},
		{"a push that GitHub had no answer to has a record", nil,
			func(w world) { w.of.service, w.Deliveries[0].Code = onGitHub, 0 }},
		{"nothing starts and has no record, and GitHub had no answer", nil, func(w world) {
			w.of.service, w.wish["d"], w.Events, w.Deliveries[0].Code = onGitHub, nothing, nil, 0
		}},
		{"a delivery that starts nothing has a run", []string{"I-1"}, func(w world) { w.wish["d"] = nothing }},
		{"a delivery that starts nothing is pending", []string{"I-1"}, func(w world) {
			w.wish["d"], w.Events[0].Status = nothing, v1alpha1.GitEventStatus{Disposition: v1alpha1.DispositionPending}
		}},
		{"a delivery that starts nothing has a check", []string{"I-1"}, func(w world) {
			w.wish["d"], w.Events[0].Status = nothing, v1alpha1.GitEventStatus{Disposition: v1alpha1.DispositionIgnored}
			w.Writes[0].ExternalID = "e"
		}},
		{"a delivery that starts nothing is ignored", nil, func(w world) {
			w.wish["d"], w.Events[0].Status = nothing, v1alpha1.GitEventStatus{Disposition: v1alpha1.DispositionIgnored}
		}},
		{"approved code of an untrusted user runs", nil,
			func(w world) { w.Live[0].Labels = map[string]string{pipelinesascode.SHA: "read"} }},
		{"unapproved code of an untrusted user runs", []string{unapprovedCode}, func(w world) {
			w.Live[0].Labels = map[string]string{pipelinesascode.SHA: "unread"}
		}},
		{"a delivery that may start something has", nil, func(w world) { w.wish["d"] = either }},
		{"a delivery that may start something has not", nil, func(w world) {
			w.wish["d"], w.Events[0].Status = either, v1alpha1.GitEventStatus{Disposition: v1alpha1.DispositionIgnored}
		}},
	} {
		e := &invariants.Evidence{
			Events: []v1alpha1.GitEvent{{
				ObjectMeta: metav1.ObjectMeta{Name: "e"}, Spec: v1alpha1.GitEventSpec{DeliveryKey: "d"},
				Status: v1alpha1.GitEventStatus{
					Disposition: v1alpha1.DispositionRuns, Runs: []v1alpha1.Run{{Name: "p", Namespace: "of-acme"}},
				},
			}},
			Live:       []pipelinev1.PipelineRun{{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "of-acme"}}},
			Deliveries: []invariants.Delivery{{Key: "d", Code: 202}},
			Writes:     []invariants.Write{{ExternalID: "p", Repository: "acme/app"}},
		}
		wishes, counts := map[string]outcome{"d": starts}, map[string]int{"d": 1}
		of := &repository{
			project: at{path: "acme/app"}, path: "acme/app", namespace: "of-acme", outcomes: wishes, counts: counts,
			approved: map[string]bool{"read": true, "unread": false}, service: onGitLab,
		}
		c.spoil(world{Evidence: e, run: &e.Events[0].Status.Runs[0], wish: wishes, counts: counts, of: of})
		check := &checker{stage: &stage{history: &invariants.History{}, repositories: []*repository{
			of,
			{project: at{path: "umbra/app"}, path: "umbra/app", namespace: "of-umbra"},
		}}}
		var found []string
		for _, v := range slices.Concat(check.wrongTenant(e), check.startedWithoutReason(e), check.ignored(e),
			check.incomplete(e), check.unapproved(e)) {
			found = append(found, v.Invariant)
		}
		if !slices.Equal(found, c.want) {
			t.Errorf("%s: found %v, want %v", c.what, found, c.want)
		}
	}
}
