// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

const (
	// readEvery is how often everything is looked at, or ten times as long as a look takes.
	readEvery = time.Second
	// readLimit bounds one look: the API server may be paused. After half an hour there are some
	// 8,000 PipelineRuns.
	readLimit = time.Minute
	// restEvery is how many times as long as a look takes nothing is looked at afterwards, while
	// the others end what is left.
	restEvery = 3
	// precision is that of the time at which a delivery was answered: GitHub notes seconds.
	precision = time.Second
)

// errEarly is returned when everything was read a moment ago.
var errEarly = errors.New("it was looked at a moment ago")

// checker reads everything again and again, and checks the invariants.
type checker struct {
	stage *stage
	// stop ends the schedule after a permanent violation.
	stop func()
	last *invariants.Evidence
	// reader knows what it has read before: there may be thousands of commits.
	reader invariants.Reader
	// pruned are the PipelineRuns that were deleted before the last look.
	pruned []invariants.Pruned
	// made are the UIDs of the PipelineRuns that were ever seen, by name.
	made map[string]types.UID
	// allowed is how many PipelineRuns of approved commits the last look has seen, and superseded
	// how many runs newer ones had ended by then.
	allowed, superseded int
	broken              []invariants.Violation
}

// watch reads until ctx ends or an invariant is broken permanently.
func (c *checker) watch(ctx context.Context) {
	for {
		begin := time.Now()
		e, err := c.read(ctx)
		if err == nil { // else the API server is away, which is the campaign's doing
			if c.broken = c.never(e); len(c.broken) > 0 {
				c.stop()
				return
			}
		}
		if !installation.Until(ctx, time.Now().Add(max(readEvery, 10*time.Since(begin)))) {
			return
		}
	}
}

// read reads everything.
func (c *checker) read(ctx context.Context) (*invariants.Evidence, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	pruned := c.stage.history.Pruned() // before the writes: what was accepted before it was deleted is among them
	e, err := c.reader.Read(ctx, both{c.stage.services[onGitHub], c.stage.services[onGitLab]}, c.stage.installation)
	if err != nil {
		c.stage.tally.add("looks that failed", 1)
		return nil, err
	}
	c.stage.tally.add("looks at everything", 1)
	e.Remember(pruned)
	c.last, c.pruned = e, pruned
	return e, nil
}

// settle waits until every invariant holds. Those that do not in time are in broken.
func (c *checker) settle(ctx context.Context) error {
	if len(c.broken) > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.stage.options.Settle)
	defer cancel()
	var next time.Time // what reads everything all the time keeps the others from ending
	err := cluster.Poll(ctx, readEvery, func() error {
		if time.Now().Before(next) {
			return errEarly
		}
		begin := time.Now()
		e, err := c.read(ctx)
		next = time.Now().Add(restEvery * time.Since(begin))
		if err != nil {
			return err
		}
		if c.broken = c.never(e); len(c.broken) > 0 {
			return nil
		}
		c.broken = c.eventually(e)
		var all error
		for _, v := range c.broken {
			all = errors.Join(all, v)
		}
		return all
	})
	if c.last == nil || err != nil && len(c.broken) == 0 {
		return fmt.Errorf("the campaign cannot be judged: %w", err)
	}
	return nil
}

// never returns the permanent violations.
func (c *checker) never(e *invariants.Evidence) []invariants.Violation {
	return slices.Concat(e.Never(), c.twice(e), c.early(e), unexplained(e), c.failed(e), c.wrongTenant(e),
		c.startedWithoutReason(e), c.unapproved(e), c.paired(e),
		e.Early(c.pruned), c.stage.history.Never(), c.outdated())
}

// outdated returns runs that newer runs should not have cancelled, and runs that they should have.
func (c *checker) outdated() (broken []invariants.Violation) {
	broken, c.superseded = c.stage.history.Superseded(c.stage.heads)
	return broken
}

// eventually returns what is not true yet. For a PipelineRun whose patches are refused, I-10
// decides instead.
func (c *checker) eventually(e *invariants.Evidence) []invariants.Violation {
	all := slices.Concat(e.Eventually(), c.ignored(e), c.incomplete(e), unmarked(e, c.stage.history.Marked()),
		c.repeatedPosts(), c.stage.history.Queue(), c.stage.history.Cancelled())
	for i, v := range all {
		if v.Invariant == "I-5" && refused(v.Subject) {
			all[i].Invariant = "I-10"
		}
	}
	for _, run := range e.Live {
		if condition := run.Status.GetCondition(apis.ConditionSucceeded); condition == nil ||
			condition.Status == corev1.ConditionUnknown {
			all = append(all, invariants.Violation{
				Invariant: "I-5", Subject: run.Name, Message: "PipelineRun " + run.Name + " does not end",
			})
		}
	}
	return all
}

// twice is I-2 over time: a name belongs to one PipelineRun for ever.
func (c *checker) twice(e *invariants.Evidence) (broken []invariants.Violation) {
	if c.made == nil {
		c.made = map[string]types.UID{}
	}
	for _, run := range e.Made() {
		if was := c.made[run.Name]; was != "" && was != run.UID {
			broken = append(broken, invariants.Violated("I-2", run.Name, "PipelineRun %s was made again", run.Name))
		}
		c.made[run.Name] = run.UID
	}
	return broken
}

// early is I-3 and I-4 over time: no conclusion before the PipelineRun has ended. Kubernetes
// truncates times to seconds, so an earlier second is an earlier write.
func (c *checker) early(e *invariants.Evidence) (broken []invariants.Violation) {
	ended := c.stage.history.Ends()
	for _, w := range e.Writes {
		invariant := map[string]string{"failure": "I-3", "success": "I-4"}[w.Conclusion]
		if end, known := ended[w.ExternalID]; invariant != "" && known && w.At.Before(end) {
			broken = append(broken, invariants.Violated(invariant, w.ExternalID,
				"write %d says %s of %s %v before it ended", w.N, w.Conclusion, w.ExternalID, end.Sub(w.At)))
		}
	}
	return broken
}

// unexplained is I-3 for refusals: all definitions are valid, so only the campaign's own denials
// refuse a PipelineRun. Only Plumbline deletes PipelineRuns, and no act deletes an object that one
// needs.
func unexplained(e *invariants.Evidence) (broken []invariants.Violation) {
	for name, run := range e.Planned {
		if run.Refused != nil && !strings.Contains(run.Refused.Message, denial) &&
			!strings.Contains(run.Refused.Message, started) {
			broken = append(broken, invariants.Violated("I-3", name,
				"run %s is refused without a cause: %s", name, run.Refused.Message))
		}
		switch r := run.Result; {
		case r == nil:
		case r.Outcome == v1alpha1.OutcomeDeleted:
			broken = append(broken, invariants.Violated("I-5", name,
				"PipelineRun %s counts as deleted, and no act deleted it", name))
		case run.UID == "" && !slices.Contains([]string{
			attempt.ReasonSuperseded, attempt.ReasonCancelled, attempt.ReasonDecided,
		}, r.Reason):
			broken = append(broken, invariants.Violated("I-1", name,
				"run %s is not created any more: %s", name, r.Reason))
		}
	}
	return broken
}

// unmarked is I-10 for runs whose patches are not refused: the patch that follows the report is
// retried until it succeeds. Tekton's controller may overwrite it with earlier labels.
func unmarked(e *invariants.Evidence, marked map[types.UID]bool) (broken []invariants.Violation) {
	for _, run := range e.Live {
		known, planned := e.Planned[run.Name]
		if planned && known.Result != nil && !refused(run.Name) && !marked[run.UID] {
			broken = append(broken, invariants.Violated("I-10", run.Name,
				"PipelineRun %s does not say that its end is reported", run.Name))
		}
	}
	return broken
}

// repeatedPosts is I-8 for a process that does not know whether a check exists: it looks the check
// up just before it posts it again. It applies to GitHub only: on GitLab a status is changed by
// posting.
func (c *checker) repeatedPosts() []invariants.Violation {
	hub, one := c.stage.services[onGitHub].(*github)
	if !one {
		return nil
	}
	return postedWithoutLookup(hub.seen().Writes(), hub.Requests())
}

// postedWithoutLookup returns the checks that were posted again without a look-up.
func postedWithoutLookup(writes []invariants.Write, asked []forge.Request) (broken []invariants.Violation) {
	const before = time.Minute
	posted := map[string]bool{}
	for _, w := range writes {
		if !w.Creates || !w.Applied || w.ExternalID == "" {
			continue
		}
		looked := func(r forge.Request) bool {
			return r.Route == forge.RouteCheckList && strings.Contains(r.Path, "/"+w.SHA+"/") &&
				strings.Contains(r.Query, url.QueryEscape(w.Name)) &&
				!r.Time.After(w.At) && w.At.Sub(r.Time) < before
		}
		if posted[w.ExternalID+w.SHA] && !slices.ContainsFunc(asked, looked) {
			broken = append(broken, invariants.Violated("I-8", w.ExternalID,
				"write %d posts the check of %s again, without a look-up", w.N, w.ExternalID))
		}
		posted[w.ExternalID+w.SHA] = true
	}
	return broken
}

// failed is I-9: while receivers are replaced and nothing else is disturbed, no delivery fails.
func (c *checker) failed(e *invariants.Evidence) (broken []invariants.Violation) {
	for _, d := range e.Deliveries {
		slow := d.Code == 503 && d.Took > installation.ReceiverAPIWait ||
			d.Code == 0 && d.Took > installation.ReceiverHeaderWait
		if d.Code/100 != 2 && !slow && c.stage.tally.quiet(d.At.Add(-d.Took), d.At.Add(precision)) {
			broken = append(broken, invariants.Violated("I-9", d.Key,
				"in a rolling restart delivery %s is answered %d", d.Key, d.Code))
		}
	}
	return broken
}
