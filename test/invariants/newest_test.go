// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

const mainBranch = "refs/heads/main"

// rivals are events of pushes to main, and the heads of main.
type rivals struct {
	*tape
	heads []Head
}

// push adds a commit, none if the pull request is closed.
func (r *rivals) push(words ...string) {
	r.heads = append(r.heads, Head{strings.Join(words, ""), r.at})
}

// says plays the next version of an event by its name, its commit and its changes. At first it has
// a run that cancels older ones and is not created yet. "because=b,two" records that its run ends
// because of event b and commit two.
func (r *rivals) says(words ...string) {
	r.t.Helper()
	name := words[0]
	event := r.events[name]
	if event == nil {
		event = &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
		event.Spec.Repository.Namespace, event.Spec.Repository.Name, event.Spec.BaseRef, event.Spec.SHA = "ns", "app",
			mainBranch, words[1]
		event.Status.Runs = []v1alpha1.Run{{Namespace: "ns", Name: "run-of-" + name, Pipeline: "p", CancelInProgress: true}}
		r.events[name] = event
	}
	for _, word := range words[2:] {
		if reason, is := strings.CutPrefix(word, "because="); is {
			from, newest, _ := strings.Cut(reason, ",")
			r.ended(event, from, &v1alpha1.Cancellation{Names: []string{"p"}, Why: supersededBy + newest})
			continue
		}
		r.changes(event, word)
	}
	r.tell(theEvents, name, event)
}

// ended records in an event what ends its run.
func (r *rivals) ended(event *v1alpha1.GitEvent, from string, why *v1alpha1.Cancellation) {
	r.t.Helper()
	name, value, err := why.CancelsAs(from)
	if err != nil {
		r.t.Fatal(err)
	}
	event.Annotations[name] = value
}

func (r *rivals) changes(event *v1alpha1.GitEvent, word string) {
	r.t.Helper()
	run := &event.Status.Runs[0]
	switch word {
	case "starts":
		run.UID = types.UID(event.Name)
	case "ends":
		run.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeSucceeded}
	case "settles":
		event.Status.Phase, run.CancelInProgress = v1alpha1.PhaseSettled, false // as a settled event does not keep it
	case "refused":
		run.Refused = &v1alpha1.Refusal{}
	case "hindered":
		event.Status.Waits = []v1alpha1.Wait{{Step: v1alpha1.StepNotify}}
	case "for-a-slot":
		event.Status.Waits = []v1alpha1.Wait{{Step: v1alpha1.StepCreate + run.Name, Reason: concurrencyLimit}}
	case "cancels-none":
		run.CancelInProgress = false
	case "of-work":
		event.Spec.BaseRef = "refs/heads/work"
	case "asked":
		r.ended(event, "c", &v1alpha1.Cancellation{Why: "octocat asked for it"})
	default:
		r.t.Fatalf("nothing changes by %q", word)
	}
}

// A run that ends without a newer one is found, and so is one that goes on next to a newer one. A
// correct history has no finding.
func TestHistoryFindsWrongSupersession(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, want string // want is a part of the violation, "" for none
		script     string // two: two commits are pushed, and the run of each has started
	}{
		{"the newer one ends the older one", "", "two; a one because=b,two; waits 9; b two ends settles"},
		{
			"the newer one waits for a slot, and ends the older one", "",
			"push one; a one starts; push two; b two for-a-slot; a one because=b,two",
		},
		{"one that comes late finds out itself", "", "push one; push two; a one because=a,two"},
		{"of one commit the later one is left", "", "push one; a one starts; b one starts; a one because=b,one"},
		{"what was asked for is another reason to end", "", "two; b two asked"},
		{
			"the older one ends the newest",
			"ends at resource version 3 because of GitEvent a and commit one: Git got that commit before",
			"two; b two because=a,one",
		},
		{"a commit that Git never had ends one", "Git got that commit before, or never", "two; b two because=b,three"},
		{"it ends itself", "it ends itself", "push one; a one starts; b one starts; a one because=a,one"},
		{
			"two of one commit end each other", "no run of commit one of pipeline p of ns/app refs/heads/main is left",
			"push one; a one starts; b one starts because=a,one; a one because=b,one",
		},
		{"the newer one does not end others", "that has no run which ends older ones",
			"two cancels-none; a one because=b,two"},
		{"another branch ends one", "that has no run which ends older ones", "two of-work; a one because=b,two"},
		{"nobody knows the newer one", "that has no run which ends older ones", "two; a one because=c,two"},
		{
			"the newer one is of another commit than it says", "that is of another commit",
			"two; push three; a one because=b,three",
		},
		{
			"the older one outlives the event of the newer one",
			"run run-of-a of commit one of ns/app refs/heads/main, planned at 00:16:41, goes on beside",
			"push one; a one starts; waits 1; push two; b two starts; b two ends settles",
		},
		{"the older one was not known for long", "", "two; b two ends settles; waits 9; a one ends"},
		{
			"both go on for long", "goes on beside the newer run run-of-b of commit two, which has started at 00:16:42",
			"two; waits 8; a one ends",
		},
		{"both go on, not for long", "", "two; waits 7; a one ends; waits 9; b two ends settles"},
		{"both go on, and the newer one waits until the others are told", "", "two hindered; waits 9; a one ends"},
		{"both go on, and the newer one ends no others", "", "two cancels-none; waits 9; a one ends"},
		{"both go on, and a third commit comes soon", "", "two; push three; waits 9; a one ends; b two ends settles"},
		{"both go on, and the pull request is closed soon", "", "two; push; waits 9; a one ends"},
		{
			"both go on, and the newer one is refused when it has its slot", "",
			"push one; a one starts; push two; b two for-a-slot; b two refused; waits 9; b two settles; a one ends",
		},
		{
			"the event of the older one is deleted", "",
			"push one; a one starts; forgets a; push two; b two starts; waits 9; b two ends settles",
		},
	} {
		r := &rivals{tape: newTape(t)}
		var all verbs
		all = verbs{
			"push": r.push, "": r.says,
			"waits":   func(words ...string) { r.at = r.at.Add(time.Duration(number(t, words[0])) * r.Patience) },
			"forgets": func(words ...string) { r.tell(theEvents, words[0], nil) },
			"two": func(words ...string) {
				all.play(t, "push one; a one starts; push two; b two starts "+strings.Join(words, " "))
			},
		}
		all.play(t, c.script)
		broken, _ := r.Superseded(func() Heads { return Heads{Line("ns", "app", 0, mainBranch): r.heads} })
		judged(t, c.what, c.want, broken)
	}
}

// A pull request has its own line, by its number. A comment is known by its plan's commit.
func TestLineOfPullRequest(t *testing.T) {
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
