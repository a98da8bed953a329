// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

const mainBranch = "refs/heads/main"

// rivals are events of pushes to main, and what main was at.
type rivals struct {
	tape
	heads  []Head
	events map[string]*v1alpha1.GitEvent
}

func (r *rivals) push(sha string) { r.heads = append(r.heads, Head{sha, r.at}) }

// says tells the next version of an event; at first it has a run that ends older ones, and is not there yet.
func (r *rivals) says(name, sha string, changes ...func(*v1alpha1.GitEvent)) {
	r.t.Helper()
	event := r.events[name]
	if event == nil {
		event = &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
		event.Spec.Repository.Namespace, event.Spec.Repository.Name, event.Spec.BaseRef, event.Spec.SHA = "ns", "app", mainBranch, sha
		event.Status.Runs = []v1alpha1.Run{{Namespace: "ns", Name: "run-of-" + name, Pipeline: "p", CancelInProgress: true}}
		r.events[name] = event
	}
	for _, change := range changes {
		change(event)
	}
	r.tell(theEvents, name, event)
}

func starts(event *v1alpha1.GitEvent) { event.Status.Runs[0].UID = types.UID(event.Name) }

func ends(event *v1alpha1.GitEvent) {
	event.Status.Runs[0].Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeSucceeded}
}

func settles(event *v1alpha1.GitEvent) {
	event.Status.Phase = v1alpha1.PhaseSettled
	event.Status.Runs[0].CancelInProgress = false // as a settled event does not keep it
}

func isRefused(event *v1alpha1.GitEvent) { event.Status.Runs[0].Refused = &v1alpha1.Refusal{} }

func isHindered(event *v1alpha1.GitEvent) {
	event.Status.Waits = []v1alpha1.Wait{{Step: v1alpha1.StepNotify}}
}

func waitsForASlot(event *v1alpha1.GitEvent) {
	event.Status.Waits = []v1alpha1.Wait{{Step: v1alpha1.StepCreate + event.Status.Runs[0].Name, Reason: concurrencyLimit}}
}

func doesNotCancel(event *v1alpha1.GitEvent) { event.Status.Runs[0].CancelInProgress = false }

func ofWork(event *v1alpha1.GitEvent) { event.Spec.BaseRef = "refs/heads/work" }

// because has an event take note that its run ends, of another one and of a commit.
func because(from, newest string) func(*v1alpha1.GitEvent) {
	return func(event *v1alpha1.GitEvent) {
		c := &v1alpha1.Cancellation{Names: []string{"p"}, Why: supersededBy + newest}
		name, value, err := c.CancelsAs(from)
		if err != nil {
			panic(err)
		}
		event.Annotations[name] = value
	}
}

// two commits are pushed, and the run of each has started.
func (r *rivals) two(changes ...func(*v1alpha1.GitEvent)) {
	r.push("one")
	r.says("a", "one", starts)
	r.push("two")
	r.says("b", "two", append(changes, starts)...)
}

// waits is for so many times as long as a controller may not know of something.
func (r *rivals) waits(times int) { r.at = r.at.Add(time.Duration(times) * r.Patience) }

// Each run that ends without a newer one is found, and each that goes on beside one; nothing is in what is sound.
func TestTheHistoryOfTheNewest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, want string // want is a part of the violation, "" for none
		play       func(r *rivals)
	}{
		{"the newer one ends the older one", "", func(r *rivals) {
			r.two()
			r.says("a", "one", because("b", "two"))
			r.waits(9)
			r.says("b", "two", ends, settles)
		}},
		{"the newer one waits for a slot, and ends the older one", "", func(r *rivals) {
			r.push("one")
			r.says("a", "one", starts)
			r.push("two")
			r.says("b", "two", waitsForASlot)
			r.says("a", "one", because("b", "two"))
		}},
		{"one that comes late finds out itself", "", func(r *rivals) {
			r.push("one")
			r.push("two")
			r.says("a", "one", because("a", "two"))
		}},
		{"of one commit the later one is left", "", func(r *rivals) {
			r.push("one")
			r.says("a", "one", starts)
			r.says("b", "one", starts)
			r.says("a", "one", because("b", "one"))
		}},
		{"what was asked for is another reason to end", "", func(r *rivals) {
			r.two()
			r.says("b", "two", func(event *v1alpha1.GitEvent) {
				name, value, _ := (&v1alpha1.Cancellation{Why: "octocat asked for it"}).CancelsAs("c")
				event.Annotations[name] = value
			})
		}},
		{"the older one ends the newest", "ends at resource version 3 because of GitEvent a and commit one: Git got that commit before", func(r *rivals) {
			r.two()
			r.says("b", "two", because("a", "one"))
		}},
		{"a commit that Git never had ends one", "Git got that commit before, or never", func(r *rivals) {
			r.two()
			r.says("b", "two", because("b", "three"))
		}},
		{"it ends itself", "it ends itself", func(r *rivals) {
			r.push("one")
			r.says("a", "one", starts)
			r.says("b", "one", starts)
			r.says("a", "one", because("a", "one"))
		}},
		{"two of one commit end each other", "no run of commit one of pipeline p of ns/app refs/heads/main is left", func(r *rivals) {
			r.push("one")
			r.says("a", "one", starts)
			r.says("b", "one", starts, because("a", "one"))
			r.says("a", "one", because("b", "one"))
		}},
		{"the newer one does not end others", "that has no run which ends older ones", func(r *rivals) {
			r.two(doesNotCancel)
			r.says("a", "one", because("b", "two"))
		}},
		{"another branch ends one", "that has no run which ends older ones", func(r *rivals) {
			r.two(ofWork)
			r.says("a", "one", because("b", "two"))
		}},
		{"nobody knows the newer one", "that has no run which ends older ones", func(r *rivals) {
			r.two()
			r.says("a", "one", because("c", "two"))
		}},
		{"the newer one is of another commit than it says", "that is of another commit", func(r *rivals) {
			r.two()
			r.push("three")
			r.says("a", "one", because("b", "three"))
		}},
		{"the older one outlives the event of the newer one", "run run-of-a of commit one of ns/app refs/heads/main, planned at 00:16:41, goes on beside", func(r *rivals) {
			r.push("one")
			r.says("a", "one", starts)
			r.waits(1)
			r.push("two")
			r.says("b", "two", starts)
			r.says("b", "two", ends, settles)
		}},
		{"the older one was not known for long", "", func(r *rivals) {
			r.two()
			r.says("b", "two", ends, settles)
			r.waits(9)
			r.says("a", "one", ends)
		}},
		{"both go on for long", "goes on beside the newer run run-of-b of commit two, which has started at 00:16:42", func(r *rivals) {
			r.two()
			r.waits(beside)
			r.says("a", "one", ends)
		}},
		{"both go on, not for long", "", func(r *rivals) {
			r.two()
			r.waits(beside - 1)
			r.says("a", "one", ends)
			r.waits(9)
			r.says("b", "two", ends, settles)
		}},
		{"both go on, and the newer one waits until the others are told", "", func(r *rivals) {
			r.two(isHindered)
			r.waits(9)
			r.says("a", "one", ends)
		}},
		{"both go on, and the newer one ends no others", "", func(r *rivals) {
			r.two(doesNotCancel)
			r.waits(9)
			r.says("a", "one", ends)
		}},
		{"both go on, and a third commit comes soon", "", func(r *rivals) {
			r.two()
			r.push("three")
			r.waits(9)
			r.says("a", "one", ends)
			r.says("b", "two", ends, settles)
		}},
		{"both go on, and the pull request is closed soon", "", func(r *rivals) {
			r.two()
			r.push("")
			r.waits(9)
			r.says("a", "one", ends)
		}},
		{"both go on, and the newer one is refused when it has its slot", "", func(r *rivals) {
			r.push("one")
			r.says("a", "one", starts)
			r.push("two")
			r.says("b", "two", waitsForASlot)
			r.says("b", "two", isRefused)
			r.waits(9)
			r.says("b", "two", settles)
			r.says("a", "one", ends)
		}},
		{"the event of the older one is deleted", "", func(r *rivals) {
			r.push("one")
			r.says("a", "one", starts)
			r.tell(theEvents, "a", nil)
			r.push("two")
			r.says("b", "two", starts)
			r.waits(9)
			r.says("b", "two", ends, settles)
		}},
	} {
		r := &rivals{events: map[string]*v1alpha1.GitEvent{}}
		r.t, r.at, r.Installation, r.Patience = t, time.Unix(1000, 0).UTC(), "ns", time.Minute
		c.play(r)
		broken, _ := r.Superseded(func() Heads { return Heads{Line("ns", "app", 0, mainBranch): r.heads} })
		found := fmt.Sprint(broken)
		if found != "[]" && c.want == "" || !strings.Contains(found, c.want) || len(broken) > 1 {
			t.Errorf("%s: found %s, want %q", c.what, found, c.want)
		}
	}
}

// Pull requests are lines of their own, by their numbers, and what is known of a comment is its plan's commit.
func TestTheLineOfAPullRequest(t *testing.T) {
	t.Parallel()
	h := &History{Installation: "ns"}
	event := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	event.Spec.Repository.Namespace, event.Spec.Repository.Name = "ns", "app"
	event.Spec.PullRequest, event.Spec.Comment = &v1alpha1.PullRequest{Number: 7}, &v1alpha1.Comment{}
	event.Status.Plan = &v1alpha1.Plan{HeadSHA: "one"}
	event.Status.Runs = []v1alpha1.Run{{Pipeline: "p"}}
	h.contends(cluster.Version{Name: "a"}, event)
	got := h.contenders["a"]["p"]
	if want := (course{Line("ns", "app", 7, ""), "p"}); got == nil || got.course != want || got.sha != "one" {
		t.Errorf("the run is remembered as %+v, want course %v and commit one", got, want)
	}
}
