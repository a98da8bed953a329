// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// contender is a planned run: newer ones of its pipeline may cancel it, and it may cancel older
// ones.
type contender struct {
	run, event, sha string
	// course is what all runs that may end it have in common: the pull request or branch, and the
	// pipeline.
	course course
	// cancels: it ends older ones.
	cancels bool
	// planned is when it was seen to be planned, and starts when it was there or waited for nothing
	// but a slot or a quota. The others are zero until it is told to end, is over, or its event
	// settles.
	planned, starts, told, over, settled time.Time
	// made: its PipelineRun was there. hindered: its event has had to wait before it knew what is
	// newer, or before others took note.
	made, hindered bool
	// ends are the newer ones that it was told of.
	ends []superseding
}

// course is a pipeline of a pull request or branch.
type course struct{ line, pipeline string }

// superseding is one reason for the end of a run: an event, and the newer commit.
type superseding struct {
	event, newest string
	revision      int64
}

// supersededBy begins the message of a run that a newer one cancels; the newer commit follows
// (docs/running.md).
const supersededBy = "superseded by "

// Line names a pull request, or a branch ("refs/heads/main") if the number is 0, of a Repository.
func Line(namespace, repository string, number int64, ref string) string {
	if number != 0 {
		ref = fmt.Sprint("#", number)
	}
	return key(namespace, repository) + " " + ref
}

func lineOf(event *v1alpha1.GitEvent) string {
	repository, number := event.Spec.Repository, int64(0)
	if event.Spec.PullRequest != nil {
		number = event.Spec.PullRequest.Number
	}
	return Line(repository.Namespace, repository.Name, number, event.GitRef())
}

// contends records what a version of an event says of its runs. A deleted event, nil, counts as
// settled.
func (h *History) contends(v cluster.Version, event *v1alpha1.GitEvent) {
	if h.contenders == nil {
		h.contenders = map[string]map[string]*contender{}
	}
	if event == nil {
		for _, c := range h.contenders[v.Name] {
			first(&c.settled, v.At)
		}
		return
	}
	all := h.contenders[v.Name]
	if all == nil {
		all = map[string]*contender{}
		h.contenders[v.Name] = all
	}
	for i := range event.Status.Runs {
		run := &event.Status.Runs[i]
		c := all[run.Pipeline]
		if c == nil {
			c = &contender{run: run.Name, event: v.Name, planned: v.At, course: course{lineOf(event), run.Pipeline}}
			all[run.Pipeline] = c
		}
		c.saw(v, event, run)
	}
}

// saw records a version of the run and its event.
func (c *contender) saw(v cluster.Version, event *v1alpha1.GitEvent, run *v1alpha1.Run) {
	c.sha = history.Record{Event: event}.SHA()
	c.cancels, c.made = c.cancels || run.CancelInProgress, c.made || run.UID != ""
	if run.UID != "" || waitsFor(event, run, concurrencyLimit, quota) {
		first(&c.starts, v.At)
	}
	if run.Refused != nil || run.Result != nil {
		first(&c.over, v.At)
	}
	if event.Cancelled(run.Pipeline) != nil {
		first(&c.told, v.At)
	}
	if event.Settled() {
		first(&c.settled, v.At)
	}
	c.hindered = c.hindered || slices.ContainsFunc(event.Status.Waits, func(w v1alpha1.Wait) bool {
		return w.Step == v1alpha1.StepSupersede || w.Step == v1alpha1.StepNotify
	})
	c.readsCancellation(v, event)
}

// readsCancellation records that the event was told that the run ends because of a newer one.
func (c *contender) readsCancellation(v cluster.Version, event *v1alpha1.GitEvent) {
	for name, value := range event.Annotations {
		from, is := strings.CutPrefix(name, plumbline.CancelAnnotation)
		var why v1alpha1.Cancellation
		if !is || json.Unmarshal([]byte(value), &why) != nil || !why.Covers(c.course.pipeline) {
			continue
		}
		from, _, _ = strings.Cut(from, ".") // of many names there is more than one annotation
		newest, superseded := strings.CutPrefix(why.Why, supersededBy)
		if superseded && !slices.ContainsFunc(c.ends,
			func(s superseding) bool { return s.event == from && s.newest == newest }) {
			c.ends = append(c.ends, superseding{from, newest, v.Revision})
		}
	}
}

// first keeps the first time.
func first(kept *time.Time, at time.Time) {
	if kept.IsZero() {
		*kept = at
	}
}

// earliest returns the first of some times that is not zero, or zero.
func earliest(all ...time.Time) (earliest time.Time) {
	for _, at := range all {
		if !at.IsZero() && (earliest.IsZero() || at.Before(earliest)) {
			earliest = at
		}
	}
	return earliest
}
