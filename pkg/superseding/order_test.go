// SPDX-License-Identifier: Apache-2.0

package superseding

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// push is an event of a push to main with a run that is there, and cancels others.
func push(name, before, sha string, received time.Duration) *v1alpha1.GitEvent {
	e := &v1alpha1.GitEvent{}
	e.Name = name
	e.Spec = v1alpha1.GitEventSpec{
		Trigger: v1alpha1.TriggerPush, SHA: sha, Before: before, BaseRef: "refs/heads/main", ReceivedAt: metav1.NewTime(start.Add(received)),
	}
	e.Spec.Repository.UID = "uid"
	e.Status.Plan = &v1alpha1.Plan{HeadSHA: sha}
	e.Status.Runs = []v1alpha1.Run{{Pipeline: "build", Name: name, UID: "uid", CancelInProgress: true}}
	return e
}

func with(e *v1alpha1.GitEvent, change func(*v1alpha1.GitEvent)) *v1alpha1.GitEvent {
	change(e)
	return e
}

func pulled(number int64) func(*v1alpha1.GitEvent) {
	return func(e *v1alpha1.GitEvent) {
		e.Spec.Trigger, e.Spec.PullRequest = v1alpha1.TriggerPullRequest, &v1alpha1.PullRequest{Number: number}
	}
}

// What becomes of an event of commit b that has replaced a, beside another one.
func TestWhoIsNewer(t *testing.T) {
	t.Parallel()
	const a, b, c = "a", "b", "c"
	tests := map[string]struct {
		other *v1alpha1.GitEvent
		head  string
		after time.Duration // since the event was received
		want  string        // of the event: "ends" the other, "yields" to a commit, "waits", or nothing
		calls int
	}{
		"the one before is ended":                          {push("o", "", a, 0), b, 0, "ends o", 1},
		"the one after takes its place":                    {push("o", b, c, 0), c, 0, "yields c", 1},
		"a replica that has not heard of the push":         {push("o", "", a, 0), a, 0, "waits", 1},
		"a replica that has not heard of the next":         {push("o", b, c, 0), b, 0, "waits", 1},
		"a replica does not lag for a minute":              {push("o", b, c, 0), b, time.Minute, "ends o", 1},
		"both are replaced by what is not recorded":        {push("o", "", a, 0), c, time.Minute, "ends o", 1},
		"both are replaced, and this one before the other": {push("o", b, "d", 0), c, time.Minute, "yields d", 1},
		"both are replaced, and nobody confirms":           {push("o", "", a, 0), c, time.Second, "waits", 1},
		"pushes in between are not recorded":               {push("o", "", "x", 0), b, time.Second, "waits", 1},
		"that for long":                                    {push("o", "", "x", 0), b, time.Minute, "ends o", 1},
		"of one commit the later one":                      {push("o", a, b, time.Second), c, 0, "yields b", 0},
		"of one commit the earlier one":                    {push("o", a, b, -time.Second), c, 0, "ends o", 0},
		"a branch that is gone: by what was pushed":        {push("o", "", a, 0), "", 0, "ends o", 1},
		"a branch that is gone, the other way":             {push("o", b, c, 0), "", 0, "yields c", 1},
		"a branch that is gone, and nobody knows":          {push("o", "", "x", 0), "", time.Minute, "", 1},
		"a push back to the commit before":                 {push("o", b, a, 0), a, time.Minute, "yields a", 1},
		"a push back, or a replica that lags":              {push("o", b, a, 0), a, 0, "waits", 1},
		"another branch":                                   {with(push("o", "", a, 0), func(e *v1alpha1.GitEvent) { e.Spec.BaseRef = "refs/heads/x" }), b, 0, "", 0},
		"a tag of the branch's name":                       {with(push("o", "", a, 0), func(e *v1alpha1.GitEvent) { e.Spec.BaseRef = "refs/tags/main" }), b, 0, "", 0},
		"a pull request":                                   {with(push("o", "", a, 0), pulled(1)), b, 0, "", 0},
		"another Repository":                               {with(push("o", "", a, 0), func(e *v1alpha1.GitEvent) { e.Spec.Repository.UID = "x" }), b, 0, "", 0},
		"another pipeline":                                 {with(push("o", "", a, 0), func(e *v1alpha1.GitEvent) { e.Status.Runs[0].Pipeline = "lint" }), b, 0, "", 0},
		"it is over, and is not settled":                   {with(push("o", "", a, 0), func(e *v1alpha1.GitEvent) { e.Status.Runs[0].Result = &v1alpha1.Result{} }), b, 0, "", 1},
		"it does not cancel, and is older":                 {with(push("o", "", a, 0), func(e *v1alpha1.GitEvent) { e.Status.Runs[0].CancelInProgress = false }), b, 0, "ends o", 1},
		"it is not planned":                                {with(push("o", "", a, 0), func(e *v1alpha1.GitEvent) { e.Status = v1alpha1.GitEventStatus{} }), b, 0, "ends o", 1},
		"it knows":                                         {with(push("o", "", a, 0), func(e *v1alpha1.GitEvent) { e.Annotations = map[string]string{plumbline.CancelAnnotation + "self": ""} }), b, 0, "", 0},
		"a newer one was refused":                          {with(push("o", b, c, 0), func(e *v1alpha1.GitEvent) { e.Status.Runs[0].UID, e.Status.Runs[0].Refused = "", &v1alpha1.Refusal{} }), c, time.Minute, "", 0},
		"a newer one is not created yet":                   {with(push("o", b, c, 0), func(e *v1alpha1.GitEvent) { e.Status.Runs[0].UID = "" }), c, 0, "", 1},
		"a newer one waits for the slot that this one has": {with(push("o", b, c, 0), waiting), c, 0, "yields c", 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			self, calls := push("self", a, b, 0), 0
			ask := func() (string, error) { calls = 1; return test.head, nil }
			l, now := lineOf(self, []*v1alpha1.GitEvent{self, test.other}), start.Add(test.after)
			got := ""
			notes, undecided := l.heed(ask, now)
			for _, n := range notes {
				got = "yields " + n.newest
			}
			if len(notes) == 0 {
				olders, err := l.olders(replaces(self), ask, now)
				undecided = errors.Join(undecided, err)
				for _, o := range olders {
					got = "ends " + o.Name
				}
			}
			if undecided != nil && got == "" && test.want != "" {
				got = "waits"
			}
			if got != test.want || calls != test.calls {
				t.Errorf("%q after %d calls (%v), want %q after %d", got, calls, undecided, test.want, test.calls)
			}
		})
	}
}

func waiting(e *v1alpha1.GitEvent) {
	e.Status.Runs[0].UID = ""
	e.Status.Waits = []v1alpha1.Wait{{Step: v1alpha1.StepCreate + e.Status.Runs[0].Name, Reason: fault.ReasonConcurrencyLimit}}
}

// Comments, labels and re-runs are of the pull request; what is not planned does not tell its commit. Of events of one commit one is left,
// whoever asks.
func TestOfOneCommitOneIsLeft(t *testing.T) {
	t.Parallel()
	at := func(second int) func(*v1alpha1.GitEvent) {
		return func(e *v1alpha1.GitEvent) {
			h := metav1.NewTime(start.Add(time.Duration(second) * time.Second))
			e.Spec.HappenedAt = &h
		}
	}
	comment := func(name string, id int64) *v1alpha1.GitEvent {
		e := with(with(push(name, "", "", 0), pulled(3)), at(1))
		e.Spec.Comment, e.Status.Plan.HeadSHA = &v1alpha1.Comment{ID: id}, "b"
		return e
	}
	rerun := push("rerun", "", "b", 0)
	rerun.Spec.Rerun, rerun.Spec.BaseRef, rerun.Labels = &v1alpha1.Rerun{}, "", map[string]string{plumbline.SubjectLabel: with(push("", "", "", 0), pulled(3)).Spec.Subject()}
	all := []*v1alpha1.GitEvent{
		with(with(push("push", "a", "b", 5), pulled(3)), at(0)), with(with(push("label", "", "b", 4), pulled(3)), at(1)),
		comment("first", 1), comment("second", 2), with(rerun, at(-1)),
	}
	for i := range all { // whichever cannot be seen by others
		var left []string
		for _, self := range all {
			if notes, err := lineOf(self, all).heed(nil, start); err == nil && len(notes) == 0 {
				left = append(left, self.Name)
			}
		}
		if !slices.Equal(left, []string{"second"}) {
			t.Errorf("from %d: %v are left", i, left)
		}
		all = append(all[1:], all[0])
	}
}

// An event that is recorded long after it happened asks Git, once it is to be created; what is recorded at once asks nobody.
func TestALateEventAsksGit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		late   time.Duration
		head   string
		after  time.Duration
		there  bool
		want   string
		asked  bool
		failed bool
	}{
		"at once":                   {time.Second, "c", 0, false, "", false, false},
		"late, and still the head":  {time.Minute, "b", 0, false, "", true, false},
		"late, and replaced":        {time.Minute, "c", time.Minute, false, "c", true, false},
		"late, not confirmed":       {time.Minute, "c", 0, false, "", true, true},
		"late, but it runs already": {time.Minute, "c", time.Minute, true, "", false, false},
		"late, the branch is gone":  {time.Minute, "", time.Minute, false, "", true, false},
		"late, nobody can be asked": {time.Minute, "!", time.Minute, false, "", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			self, asked := push("self", "a", "b", 0), false
			happened := metav1.NewTime(start.Add(-test.late))
			if self.Spec.HappenedAt = &happened; !test.there {
				self.Status.Runs[0].UID = ""
			}
			notes, err := lineOf(self, nil).heed(func() (string, error) {
				asked = true
				if test.head == "!" {
					return "", errors.New("502")
				}
				return test.head, nil
			}, start.Add(test.after))
			got := ""
			for _, n := range notes {
				got = n.newest
			}
			if got != test.want || asked != test.asked || (err != nil) != test.failed {
				t.Errorf("%q, asked %t, error %v; want %q, %t, %t", got, asked, err, test.want, test.asked, test.failed)
			}
		})
	}
}

// However many pipelines there are, an annotation stays small, and none is left out.
func TestNamesArePortioned(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 300 {
		names = append(names, strings.Repeat("x", 60)+string(rune('a'+i%26))+string(rune('a'+i/26)))
	}
	var all []string
	for _, part := range parts(append(names, names[0])) {
		if len(strings.Join(part, `","`)) > maxNames+10 {
			t.Errorf("a part of %d names", len(part))
		}
		all = append(all, part...)
	}
	if len(all) != len(names) {
		t.Errorf("%d names, want %d", len(all), len(names))
	}
}

// A newer event that gets a second run later has the older one take note of both: what was noted first is not forgotten.
func TestALaterNoteKeepsTheFirst(t *testing.T) {
	t.Parallel()
	self := push("self", "", "a", 0)
	for part, name := range []string{"build", "lint"} {
		key, value, err := cancellation(&self.Spec, []string{name}, "b").CancelsAs(partName("newer", part))
		if err != nil {
			t.Fatal(err)
		}
		metav1.SetMetaDataAnnotation(&self.ObjectMeta, key, value)
	}
	metav1.SetMetaDataAnnotation(&self.ObjectMeta, plumbline.CancelAnnotation+"newer2", `{"names":["other"]}`)
	if got := parts(append(noted(self, "newer"), "test")); len(got) != 1 || !slices.Equal(got[0], []string{"build", "lint", "test"}) {
		t.Errorf("%v", got)
	}
}
