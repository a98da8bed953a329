// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// happening is something that happened to an untrusted user's pull request, in tenths of a second:
// a push, a reopening, or a writer's command. It is received and planned later.
type happening struct {
	kind, by                   string // by is who pushes
	base                       string // the target branch, as a push tells it
	sha                        string // the head from then on
	before                     string
	at, received, planned, age int
	event                      *v1alpha1.GitEvent
}

// stamp is a tenth of a second as deliveries contain it.
func stamp(tenth int) metav1.Time {
	return metav1.NewTime(time.Unix(int64(1_800_000_000+tenth/10), 0))
}

// story is what happens in one seed, in the order of time, with at least n happenings.
func story(r *rand.Rand, least int) (all []*happening) {
	now, head := 0, ""
	for i := range least + r.IntN(7) {
		now += 1 + r.IntN([]int{3, 10, 30}[r.IntN(3)])
		h := &happening{kind: []string{"push", "push", "/ok-to-test", "/test", "reopened"}[r.IntN(5)], at: now, age: i}
		if i == 0 {
			h.kind = "push"
		}
		h.by, h.base = []string{"author", "author", "author", "eve"}[r.IntN(4)],
			[]string{"main", "main", "main", "main", "main", "release"}[r.IntN(6)]
		if h.kind == "push" {
			h.before, head = head, fmt.Sprintf("%040x", i+1)
			if i > 2 && r.IntN(3) == 0 { // back to an older commit
				if older := all[r.IntN(len(all))].sha; older != h.before {
					head = older
				}
			}
		}
		h.sha = head
		h.received = now + r.IntN(40)*r.IntN(2)
		h.planned = h.received + 1 + r.IntN(30)
		all = append(all, h)
	}
	return all
}

// recorded returns the GitEvent of a happening.
func (h *happening) recorded() *v1alpha1.GitEvent {
	in := forked()
	if strings.HasPrefix(h.kind, "/") {
		in = saying("member")
	}
	spec, at := in.Event.Spec, stamp(h.at)
	spec.HappenedAt, spec.ReceivedAt = &at, stamp(h.received)
	if spec.Comment == nil {
		spec.SHA, spec.Before, spec.Action, spec.Actor, spec.BaseRef = h.sha, h.before,
			strings.Replace(h.kind, "push", "synchronize", 1), h.by, h.base
	}
	return &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("event-%d", h.age)}, Spec: *spec}
}

// S21, B12 over 1,000 seeds: in any order of pushes, receipts and plans, a commit of an untrusted
// user runs only if it was the head before a writer's command was written. In every second seed
// deliveries are not signed and contain false heads and times; the Git service returns the true
// ones.
func TestApprovalsInAnyOrder(t *testing.T) {
	t.Parallel()
	ran, declined := 0, 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(21, seed))
		all := story(r, 4)
		var forging *rand.Rand
		if seed%2 == 1 {
			forging = r
		}
		planned := slices.Clone(all)
		slices.SortStableFunc(planned, func(a, b *happening) int { return a.planned - b.planned })
		for _, h := range planned {
			h.event = h.recorded()
			made := planAt(t, h, all, seeds{forging: forging})
			h.event.Status = v1alpha1.GitEventStatus{
				Disposition: made.Disposition, Plan: &v1alpha1.Plan{HeadSHA: made.HeadSHA, Approval: made.Approval},
			}
			if len(made.Runs) == 0 {
				declined++
				continue
			}
			ran++
			if !slices.ContainsFunc(all, func(c *happening) bool {
				return strings.HasPrefix(c.kind, "/") && c.received <= h.planned && c.sha == made.HeadSHA
			}) {
				t.Errorf("seed %d: %s of %d runs %s, which was the head at no command", seed, h.kind, h.at, made.HeadSHA)
			}
			if made.Approval.SHA != "" {
				t.Errorf("seed %d: %s of %d runs %s by an approval of %s", seed, h.kind, h.at, made.HeadSHA, made.Approval.SHA)
			}
			if strings.HasPrefix(h.kind, "/") && made.Approval.Event == h.event.Name && h.sha != made.HeadSHA {
				t.Errorf("seed %d: the command of %d, written at %s, approves %s", seed, h.at, h.sha, made.HeadSHA)
			}
		}
	}
	if ran < 200 || declined < 200 {
		t.Errorf("%d ran and %d did not: the seeds show too little", ran, declined)
	}
}

// wasHead reports whether a commit became the head before a time.
func wasHead(all []*happening, sha string, moment int) bool {
	return slices.ContainsFunc(all, func(h *happening) bool { return h.kind == "push" && h.sha == sha && h.at < moment })
}

// versions returns the heads that the pull request had by a time, newest first.
func versions(all []*happening, moment int) (heads []git.Version) {
	for _, h := range all {
		if h.kind == "push" && h.at <= moment {
			heads = append([]git.Version{{SHA: h.sha, Since: stamp(h.at).Time}}, heads...)
		}
	}
	return heads
}

// lies changes a record to something that did not happen.
func lies(forging *rand.Rand, event *v1alpha1.GitEvent, all []*happening) *v1alpha1.GitEvent {
	forged, at := event.DeepCopy(), stamp(forging.IntN(200))
	if forged.Spec.Comment == nil {
		forged.Spec.SHA, forged.Spec.HappenedAt = all[forging.IntN(len(all))].sha, &at
	}
	return forged
}

// seeds are the circumstances in which events are planned.
type seeds struct {
	// forging falsifies deliveries, unless it is nil.
	forging *rand.Rand
	// remember is the setting; fired is when the writer loses write access, and touched what
	// commits change.
	remember bool
	fired    int
	touched  map[string]string
}

// planAt plans an event with the records and the head at that time.
func planAt(t *testing.T, h *happening, all []*happening, s seeds) *plan.Plan {
	t.Helper()
	w := &env{files: []git.File{edited(pipeline("a"), "[push]", "[pull_request]", "[main]", "[main, release]")},
		writers: "member", said: h.kind, touched: s.touched}
	if s.fired > 0 && h.planned >= s.fired {
		w.writers = ""
	}
	var known []history.Record
	for _, other := range all {
		if other.at <= h.planned {
			w.moved = other.sha
		}
		if other == h || other.received > h.planned {
			continue
		}
		event := other.event
		if event == nil { // it is not planned yet
			event = other.recorded()
		}
		if s.forging != nil {
			event = lies(s.forging, event, all)
		}
		known = append(known, history.Record{Event: event})
	}
	in := forked()
	in.Event.Name, in.Event.Spec = h.event.Name, &h.event.Spec
	if s.forging != nil {
		w.versions, w.actor = versions(all, h.planned), &h.by
		if in.Event.Spec.Comment == nil {
			in.Event.Spec.Actor = []string{"author", "eve"}[s.forging.IntN(2)]
		}
	}
	config := *in.Config
	config.RememberApprovals, in.Config = s.remember, &config
	sources := w.sources()
	sources.Records = func(context.Context) ([]history.Record, error) { return known, nil }
	made, err := plan.Make(t.Context(), in, sources)
	if err != nil {
		t.Fatal(err)
	}
	return made
}
