// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// A Git service may refuse one request each time and serve all others: GitHub answers 500 for a
// comparison that takes it too long. docs/adr/0046 describes the consequences.
const (
	// shownAfter is how long a plan has waited when its commit shows a check that says for what.
	shownAfter = 2 * time.Minute
	// notedWithin is how long ago the plan may have met a refusal before it is recorded: the
	// retries have intervals.
	notedWithin = 20 * time.Minute
	// enoughAfter is how long the same refusal is met until a less complete answer is accepted.
	enoughAfter = time.Hour
	// reasonWaiting is the reason of a plan of which nothing is decided.
	reasonWaiting = "Waiting"
)

// refusals are what the Git service refuses while an event is planned. The wait of the run that
// stands for the plan records what is refused and since when.
type refusals struct {
	a *attempt.Attempt
	// serves reports whether the Git service answers for the event's repository.
	serves func() bool
	met    error
}

// enough reports whether a refusal was met for enoughAfter.
func (r *refusals) enough(refused error) bool {
	r.meet(refused)
	return refusal(refused) && r.long()
}

// meet records an error if it is a refusal.
func (r *refusals) meet(err error) {
	if refusal(err) {
		r.met = err
		r.note()
	}
}

// long reports whether the last refusal was met for enoughAfter.
func (r *refusals) long() bool {
	wait := r.a.Waits.Of(r.step())
	return wait != nil && r.a.Clock.Since(wait.Since.Time) >= enoughAfter
}

// Refused reports whether a plan has met a refusal for an hour. An outage does not count, however
// long it is.
func (s *Step) Refused(a *attempt.Attempt) bool { return (&refusals{a: a}).long() }

// refusal reports whether the Git service has refused something, or has not answered.
func refusal(err error) bool {
	f := fault.Of(err)
	if f == nil {
		return false
	}
	return f.Reason == fault.ReasonGitRejected || f.Class == fault.Transient && attempt.FromGitService(f.Reason)
}

// run returns the name of the run that stands for the plan, which is never created.
func (r *refusals) run() string {
	return plan.WaitingRun(r.a.Event.Name)
}

func (r *refusals) step() string { return v1alpha1.StepCreate + r.run() }

// note records a refusal. The refusal of another request is another one; the refusal of the same
// request may have another reason each time, and the plan may have met it before it was recorded.
// It starts while the service answers for the repository: what an outage refuses may be served
// after it.
func (r *refusals) note() {
	before := r.a.Waits.Of(r.step())
	about, _, _ := strings.Cut(fault.Of(r.met).Message, ": ")
	if before != nil && !strings.HasPrefix(before.Message, about) {
		r.a.Waits.Clear(r.step())
		before = nil
	}
	since := metav1.NewTime(r.a.Clock.Now().Truncate(time.Second))
	if before != nil {
		since = before.Since
	} else {
		plans := r.a.Waits.Of(v1alpha1.StepPlan)
		if plans == nil || r.a.Clock.Since(plans.Since.Time) < shownAfter || !r.serves() {
			return
		}
		if strings.Contains(plans.Message, about) && r.a.Clock.Since(plans.Since.Time) < notedWithin {
			since = plans.Since
		}
	}
	_ = r.a.Waits.Update(r.step(), r.met) // the plan's wait includes it
	if noted := r.a.Waits.Of(r.step()); noted != nil {
		noted.Since = since
	}
}

// shown returns the run whose check shows what the plan waits for, nil for none. The check is only
// sent while the Git service serves other requests: in an outage it could not be sent, and hardly
// anything waits after one. Its wait ends with the plan's.
func (r *refusals) shown(ctx context.Context, client *provider.Client, made *plan.Plan, err error) *v1alpha1.Run {
	known := r.known()
	if err == nil && made.Wait == nil {
		r.a.Waits.Clear(r.step())
		return r.over(known)
	}
	if r.met == nil {
		r.meet(err)
	}
	if known != nil {
		return known
	}
	remark := r.a.Event.Spec.Comment != nil && made.Command == "" // hardly any pipeline runs for it
	if made.HeadSHA == "" || remark || r.a.Waits.Of(r.step()) == nil || !responds(ctx, client) {
		return nil
	}
	return &v1alpha1.Run{
		Pipeline: plan.Definitions, Namespace: r.a.Event.Spec.Repository.Namespace, Name: r.run(), Unresolved: true,
	}
}

func (r *refusals) known() *v1alpha1.Run {
	for i := range r.a.Event.Status.Runs {
		if run := &r.a.Event.Status.Runs[i]; run.Name == r.run() {
			return run.DeepCopy()
		}
	}
	return nil
}

// over concludes the check if people may have seen it; a check that was never sent is forgotten.
func (r *refusals) over(known *v1alpha1.Run) *v1alpha1.Run {
	if known == nil || r.a.Accepted(known.Name) == nil {
		return nil
	}
	const message = "It is decided which pipelines start: " +
		"the Git service has shown what was waited for, or did not show it for too long."
	known.Unresolved = false
	known.Result = &v1alpha1.Result{
		Outcome: v1alpha1.OutcomeSkipped, Reason: attempt.ReasonDecided, Message: message, Text: message,
	}
	return known
}

// Serves reports whether the Git service answers for the event's repository.
func (s *Step) Serves(ctx context.Context, a *attempt.Attempt) bool {
	client, err := a.Git.Connect(ctx)
	return err == nil && responds(ctx, client)
}

func responds(ctx context.Context, client *provider.Client) bool {
	_, err := client.DefaultBranch(ctx)
	return err == nil
}

// enterWaiting records that nothing more is decided yet, for the check that shows it.
func enterWaiting(ctx context.Context, a *attempt.Attempt, made *plan.Plan, shown *v1alpha1.Run, waits error) error {
	if a.Planned() {
		known := func(run v1alpha1.Run) bool { return run.Name == shown.Name }
		if !slices.ContainsFunc(a.Event.Status.Runs, known) {
			a.Event.Status.Runs = append(a.Event.Status.Runs, *shown)
		}
		return waits
	}
	next := planOf(a, made)
	why := fault.Of(waits).Message
	next.Reason, next.Message = reasonWaiting, "nothing is decided: "+why
	next.Decisions = []v1alpha1.Decision{{File: plan.Definitions, Open: true, Reason: "waiting: " + why}}
	a.Event.Status.Runs = []v1alpha1.Run{*shown}
	a.Event.Status.Reply = replyOf(a, made)
	if err := writePlan(ctx, a, v1alpha1.DispositionRuns, next); err != nil {
		return err
	}
	return waits
}
