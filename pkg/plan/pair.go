// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resolve"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

const (
	// pullPatience is how long after its receipt a push waits until the event of its pull request
	// is recorded and planned.
	pullPatience = 5 * time.Minute
	// quietPatience is the part of it that is not reported: the two deliveries arrive at about the
	// same time.
	quietPatience = time.Minute
	// soonest and latest limit when the push is retried.
	soonest, latest = time.Second, 30 * time.Second
)

// declinePairs declines the pipelines that the other event of the same commit runs: a push to the
// branch of an open pull request and the pull request's own event are one change
// (skip-push-event-for-pr-commits). Nothing is read if nothing would run. An error is not an
// answer, because a guess could run the commit twice (B14). See docs/adr/0048.
func (d *draft) declinePairs(ctx context.Context, open []*candidate) {
	if !d.Config.SkipPushOfPulls || d.onRequest() {
		return
	}
	wanted := slices.DeleteFunc(slices.Clone(open), func(c *candidate) bool {
		declined := c.err != nil && !fault.Is(c.err, fault.Invalid)
		return declined || d.runs.named(c.run) != nil
	})
	switch {
	case len(wanted) == 0:
	case pushesBranch(d.spec):
		if err := d.declinePush(ctx); err != nil {
			for _, c := range wanted {
				c.err = err
			}
		}
	case ownEvent(d.spec) && authz.SameRepository(d.spec) && d.RecordsOf != nil:
		d.declinePull(ctx, wanted)
	}
}

func pushesBranch(spec *v1alpha1.GitEventSpec) bool {
	return spec.Trigger == v1alpha1.TriggerPush && spec.Comment == nil && spec.Rerun == nil && spec.Incoming == nil &&
		strings.HasPrefix(spec.BaseRef, branchPrefix)
}

// ownEvent reports whether an event is a pull request's own: it was opened, reopened, pushed to, or
// became ready for review.
func ownEvent(spec *v1alpha1.GitEventSpec) bool {
	return spec.PullRequest != nil && spec.Comment == nil && spec.Rerun == nil && spec.EventType != match.LabelEvent &&
		!spec.Closes()
}

// declinePush returns an Ignored fault if the own event of a pull request of the pushed branch runs
// the commit, and a Throttled fault while that event may still do so.
func (d *draft) declinePush(ctx context.Context) error {
	if err := d.facts.learn(ctx, template.Needs{Pulls: true}); err != nil {
		return err
	}
	var waits error
	for _, pull := range d.pullsOfBranch() {
		runs, err := d.pullRuns(ctx, pull)
		switch {
		case runs:
			return fault.Ignoredf(reasonInPullRequest,
				"the commit is in pull request #%d, whose own event runs it (skip-push-event-for-pr-commits)", pull.Number)
		case waits == nil:
			waits = err
		}
	}
	return waits
}

// pullsOfBranch returns the pull requests of the pushed branch: those that the Git service lists
// for the commit, and those whose own event has found the push. Pull requests of other branches or
// repositories do not count.
func (d *draft) pullsOfBranch() []git.Pull {
	all := slices.DeleteFunc(slices.Clone(d.facts.pulls), func(pull git.Pull) bool {
		return pull.HeadProjectID != d.spec.Project.ID || branchPrefix+pull.HeadRef != d.spec.BaseRef
	})
	for key := range d.Event.Annotations {
		text, found := strings.CutPrefix(key, plumbline.PullAnnotation)
		number, err := strconv.ParseInt(text, 10, 64)
		listed := slices.ContainsFunc(all, func(pull git.Pull) bool { return pull.Number == number })
		if found && err == nil && !listed { // it was closed since, or is not listed yet
			all = append(all, git.Pull{Number: number})
		}
	}
	slices.SortFunc(all, func(a, b git.Pull) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// pullRuns reports whether a pull request's own event of this commit has runs. An error means that
// it may still get some: its delivery has not arrived, or it is not planned yet. An event that
// ended without runs (no pipeline matches, it waits for approval, it was refused) runs nothing, so
// the push must.
func (d *draft) pullRuns(ctx context.Context, pull git.Pull) (bool, error) {
	isHead := pull.Open && (pull.SHA == d.spec.SHA || pull.SHA == "")
	if d.RecordsOf == nil { // the caller trusts the deliveries
		return isHead, nil
	}
	about := *d.spec
	about.PullRequest = &v1alpha1.PullRequest{Number: pull.Number}
	late, counts := d.late(d.Event.Spec), d.counts(pull)
	known, err := d.others(ctx, about.Subjects(), func(spec *v1alpha1.GitEventSpec) bool {
		return ownEvent(spec) && spec.SHA == d.spec.SHA && counts(spec)
	}, func(*v1alpha1.GitEvent) (bool, map[string]string) { return late, nil })
	if err != nil {
		return false, err
	}
	switch {
	case slices.ContainsFunc(known, hasRuns):
		return true, nil
	case late:
		return false, nil
	case slices.ContainsFunc(known, undecided):
		return false, d.retryLater("the event of pull request #%d, which may run the same commit, is not planned yet",
			pull.Number)
	case len(known) == 0 && isHead:
		return false, d.retryLater("the event of open pull request #%d, which has the same commit, is not on record yet",
			pull.Number)
	}
	return false, nil
}

// counts returns which of a pull request's own events count. All count if it is open, or if one of
// them has found the push before the push was planned. Otherwise the pull request was closed early,
// and only the event of the same push counts: a push to the branch of a closed pull request runs.
// The same push is of the same time, as far as the Git service tells both.
func (d *draft) counts(pull git.Pull) func(*v1alpha1.GitEventSpec) bool {
	_, found := d.Event.Annotations[pullKey(pull.Number)]
	return func(own *v1alpha1.GitEventSpec) bool {
		return pull.Open || found || own.Before != "" && own.Before == d.spec.Before && together(own, d.spec)
	}
}

// together reports whether two deliveries may be of one change: less than pullPatience lies between
// them, or the Git service does not tell when both happened.
func together(a, b *v1alpha1.GitEventSpec) bool {
	return a.HappenedAt == nil || b.HappenedAt == nil || a.HappenedAt.Sub(b.HappenedAt.Time).Abs() < pullPatience
}

func pullKey(number int64) string { return plumbline.PullAnnotation + strconv.FormatInt(number, 10) }

// hasRuns reports whether an event has runs of pipelines. A run that only shows a wait, or that a
// pipeline is not started, does not count.
func hasRuns(r history.Record) bool {
	found := r.Event.Status.Runs
	onlyShows := func(run v1alpha1.Run) bool {
		return run.Skipped() || run.Pipeline == Definitions && run.Refused == nil
	}
	return len(found) == 0 && r.Event.Status.Disposition == v1alpha1.DispositionRuns ||
		slices.ContainsFunc(found, func(run v1alpha1.Run) bool { return !onlyShows(run) })
}

// retryLater returns a Throttled fault. The order in which the two deliveries arrive is not
// reported.
func (d *draft) retryLater(format string, number int64) error {
	waited := d.Now().Sub(d.Event.Spec.ReceivedAt.Time)
	reason := fault.ReasonPullRequestEvent
	if waited < quietPatience {
		reason = fault.ReasonBusy
	}
	return fault.Throttledf(reason, min(max(waited, soonest), latest, pullPatience-waited), format, number)
}

// declinePull declines the pipelines that a push of the same commit to the pull request's branch
// has started because the pull request's delivery was late.
func (d *draft) declinePull(ctx context.Context, wanted []*candidate) {
	about := *d.spec
	about.PullRequest = nil
	pushes, err := d.others(ctx, about.Subjects(), func(spec *v1alpha1.GitEventSpec) bool {
		return pushesBranch(spec) && spec.BaseRef == branchPrefix+d.spec.HeadRef
	}, d.findsPush)
	if err != nil {
		for _, c := range wanted {
			c.err = err
		}
		return
	}
	for _, push := range pushes {
		if !d.knewOf(push.Event) {
			continue
		}
		for _, c := range wanted {
			if d.pushStarted(push.Event, c) {
				c.err = fault.Ignoredf(reasonInPush, "the push of this commit has started it, as GitEvent %s: "+
					"the event of the pull request was not there in time (skip-push-event-for-pr-commits)", push.Event.Name)
			}
		}
	}
}

// knewOf reports whether a push was planned after the pull request's event had happened. What a
// push started before does not count: a pull request that is opened later has its own runs. A
// commit that was pushed to the pull request counts as the push's, however fast that was planned.
func (d *draft) knewOf(push *v1alpha1.GitEvent) bool {
	at := d.spec.Happened()
	if d.spec.Before != "" {
		at = at.Add(-git.Lag)
	}
	plan := push.Status.Plan
	return plan != nil && plan.At != nil && !plan.At.Time.Before(at.Truncate(time.Second))
}

// pushStarted reports whether a push has started the pipeline. A run that was refused, or cancelled
// before it was created, does not count.
func (d *draft) pushStarted(push *v1alpha1.GitEvent, c *candidate) bool {
	name := runName(push.Name, c.definition)
	return slices.ContainsFunc(push.Status.Runs, func(run v1alpha1.Run) bool {
		return run.Key() == name && run.Refused == nil && (run.Started() || run.Result == nil)
	})
}

// late reports whether a push, as recorded, no longer waits for the event of a pull request.
func (d *draft) late(push *v1alpha1.GitEventSpec) bool {
	return d.Now().Sub(push.ReceivedAt.Time) >= pullPatience
}

// findsPush reports whether an unplanned push must read the records again, and returns the
// annotation by which the push finds this pull request's event. A push with the annotation waits
// for this event, whatever the Git service says about the pull request. A push that may no longer
// wait by another controller's clock must read again each time.
func (d *draft) findsPush(push *v1alpha1.GitEvent) (outdated bool, note map[string]string) {
	key := pullKey(d.spec.PullRequest.Number)
	late := d.Now().Sub(push.AsRecorded().ReceivedAt.Time) >= pullPatience-git.Lag
	return late || push.Annotations[key] != d.Event.Name, map[string]string{key: d.Event.Name}
}

// others returns the events of a subject that match picks. If either of two events could continue
// without the other, one has to see what the other has decided. So an event that is not decided and
// outdated cannot store a decision without reading again.
func (d *draft) others(
	ctx context.Context, subjects string, picks func(*v1alpha1.GitEventSpec) bool,
	outdates func(*v1alpha1.GitEvent) (outdated bool, note map[string]string),
) ([]history.Record, error) {
	list := func() ([]history.Record, error) {
		all, err := d.RecordsOf(ctx, subjects)
		if err != nil {
			return nil, fmt.Errorf("reading what else is on record of commit %s: %w", d.spec.SHA, err)
		}
		return slices.DeleteFunc(all, func(r history.Record) bool { return !picks(&r.Event.Spec) }), nil
	}
	known, err := list()
	if err != nil {
		return nil, err
	}
	rivals := false
	for _, other := range known {
		outdated, note := outdates(other.Event)
		if !undecided(other) || !outdated {
			continue
		}
		if err := d.Outdate(ctx, other, note); err != nil {
			return nil, err
		}
		rivals = true
	}
	if !rivals {
		return known, nil
	}
	return list()
}

// undecided reports whether an event may still start something for which it has no run.
func undecided(r history.Record) bool {
	return !r.Event.Settled() && !r.Event.Status.Plan.Decided()
}

// runName returns the name of a PipelineRun. It is derived from the pipeline's name without the
// dash of a generateName, because the names of existing PipelineRuns must not change.
func runName(event string, definition resolve.Definition) string {
	return resources.RunName(event, definition.File, definition.Document, strings.TrimSuffix(definition.Name, "-"))
}
