// SPDX-License-Identifier: Apache-2.0

package authz_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// pushedBy is the record of a push to the branch of a writer's pull request, with its disposition.
func pushedBy(actor, disposition string) history.Record {
	e := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: "push-1"}, Spec: *forked("writer")}
	e.Spec.Action, e.Spec.Before, e.Spec.Actor = "synchronize", strings.Repeat("b", 40), actor
	if disposition != "" {
		e.Status.Disposition, e.Status.Plan = v1alpha1.Disposition(disposition), &v1alpha1.Plan{HeadSHA: sha}
	}
	return history.Record{Event: e}
}

// A push by an untrusted user to a writer's fork waits for approval (S10). A writer who sets a
// label on the pull request, or reopens it, has not read it: nothing runs, and an approved commit
// runs as approved.
func TestLabelDoesNotApproveUntrustedPush(t *testing.T) {
	t.Parallel()
	approved := pushedBy("stranger", string(v1alpha1.DispositionRuns))
	approved.Event.Status.Plan.Approval = &v1alpha1.Approval{By: "lea", BaseRef: "main", HeadProjectID: 99}
	labelled := pushedBy("lea", "")
	labelled.Event.Spec.Action, labelled.Event.Spec.Before = "labeled", ""
	const pending, runs = string(v1alpha1.DispositionPending), string(v1alpha1.DispositionRuns)
	for name, c := range map[string]struct {
		recorded []history.Record
		allowed  bool
		by       string
	}{
		"it waits":                    {[]history.Record{pushedBy("stranger", pending)}, false, ""},
		"its push is not planned yet": {[]history.Record{pushedBy("stranger", "")}, false, ""},
		"it was approved":             {[]history.Record{pushedBy("stranger", pending), approved}, true, "lea"},
		"the author has pushed it since": {
			[]history.Record{pushedBy("stranger", pending), pushedBy("writer", runs)}, true, "",
		},
		"the author's waited":          {[]history.Record{pushedBy("writer", pending)}, true, ""},
		"nothing is on record":         {nil, true, ""},
		"another label is not planned": {[]history.Record{labelled}, true, ""},
	} {
		for action, eventType := range map[string]string{"labeled": match.LabelEvent, "reopened": "pull_request",
			"ready_for_review": "pull_request", "update": "Merge Request"} {
			t.Run(name+", "+action, func(t *testing.T) {
				t.Parallel()
				desk := authz.New(&pacv1alpha1.Repository{}, &config.Config{}, authz.Sources{
					Access: service{}, History: heads{},
					Recorded: func(context.Context) ([]history.Record, error) { return c.recorded, nil },
				})
				spec := forked("writer")
				spec.Action, spec.EventType = action, eventType
				got, err := desk.Decide(t.Context(), authz.Event{Name: "label-1", Spec: spec})
				by := ""
				if got.Approval != nil {
					by = got.Approval.By
				}
				if err != nil || got.Allowed != c.allowed || by != c.by ||
					!c.allowed && (got.EndsPending || !strings.Contains(got.Why, "approv")) {
					t.Errorf("%+v, %v", got, err)
				}
			})
		}
	}
}
