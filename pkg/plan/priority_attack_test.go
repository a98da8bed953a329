// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// A comment sets params for the runs that it starts, but not for their priority.
func TestCommentCannotSetPriority(t *testing.T) {
	in := commented()
	in.Repository.Spec = prioritizing("int(urgency)").Repository.Spec
	in.Repository.Spec.Params = &[]pacv1alpha1.Params{{Name: "urgency", Value: "3"}}
	w := written("/test build urgency=90")
	w.files = []git.File{edited(pulled("build"), "true", "echo {{ urgency }}")}
	made := w.make(t, in)
	if got := shownPriority(made); got != "3" {
		t.Errorf("the priority is %s: %v", got, reasons(made))
	}
	if run := made.Runs[0]; !strings.Contains(string(run.Manifest), "echo 90") {
		t.Errorf("the run has not what the comment says: %s", run.Manifest)
	}
}

// The number of a secret param appears in no message, even if it is capped.
func TestPriorityHidesSecretNumbers(t *testing.T) {
	in := prioritizing("int(pin)")
	in.Repository.Spec.Params = &[]pacv1alpha1.Params{{Name: "pin", SecretRef: &pacv1alpha1.Secret{Name: "s", Key: "k"}}}
	w := &env{files: []git.File{pipeline("a")}, secrets: map[template.SecretRef]string{{Name: "s", Key: "k"}: "83920174"}}
	if got := reasons(w.make(t, in))["a"]; strings.Contains(got, "83920174") || !strings.Contains(got, "beyond 100") {
		t.Error(got)
	}
}

// A run that was planned without a limit keeps its place when a limit is set before the rest of the
// event can be planned.
func TestLaterLimitKeepsPlannedPriority(t *testing.T) {
	in := prioritizing("50")
	limit := in.Repository.Spec.ConcurrencyLimit
	in.Repository.Spec.ConcurrencyLimit = nil
	w := &env{files: []git.File{pipeline("a"), pipeline("b", `on-path-change: "[docs/**]"`)}, changedErr: down()}
	made := w.make(t, in)
	if len(made.Runs) != 1 || made.Wait == nil {
		t.Fatalf("%d runs, waits for %v", len(made.Runs), made.Wait)
	}
	in = again(in, made)
	in.Repository.Spec.ConcurrencyLimit = limit
	w.changed, w.changedErr = git.Changes{Added: []string{"docs/x"}}, nil
	made = w.make(t, in)
	if got := shownPriority(made); got != "none" || len(made.Runs) != 2 {
		t.Errorf("the priority is %s, %d runs: %v", got, len(made.Runs), reasons(made))
	}
}

// What the priority and the runs both depend on is read once.
func TestPriorityReadsNothingTwice(t *testing.T) {
	w := &env{files: []git.File{pipeline("a"), edited(pipeline("b"), "true", "echo {{ body.x }} {{ files.all }}")},
		payload: `{"x":"y"}`}
	made := w.make(t, prioritizing(`body.x == "y" && files.all.size() == 0 ? 7 : 0`))
	if got := shownPriority(made); got != "7" || w.count("payload") != 1 || w.count("changed") != 1 {
		t.Errorf("the priority is %s: %v, asked %q", got, reasons(made), w.asked)
	}
}

// slowly is a Git service that lists the changed files after the caller's time limit.
type slowly struct {
	*env
	patience time.Duration
}

func (s *slowly) Changed(ctx context.Context, _ *v1alpha1.GitEventSpec) (git.Changes, error) {
	until, _ := ctx.Deadline()
	s.patience = time.Until(until)
	return git.Changes{}, fmt.Errorf("listing: %w", context.DeadlineExceeded)
}

// A Git service that needs a whole attempt for the changed files does not delay runs; otherwise
// none would ever be planned.
func TestSlowServiceDoesNotDelayQueue(t *testing.T) {
	s := &slowly{env: &env{files: []git.File{pipeline("a")}}}
	sources := s.sources()
	sources.Source = s
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second)
	defer cancel()
	made, err := plan.Make(ctx, prioritizing(`files.all.size()`), sources)
	if err != nil || len(created(made)) != 1 || shownPriority(made) != "0" || s.patience > 10*time.Second {
		t.Errorf("%v created, priority %s, it may take %v: %v", created(made), shownPriority(made), s.patience, err)
	}
}
