// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// recorded is an event on a commit with runs ("name outcome"; "running" has none yet, "refused"
// will have none).
func recorded(sha string, settled bool, runs ...string) history.Record {
	event := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: "earlier"}}
	event.Spec.SHA, event.Spec.EventType, event.Status.Plan = sha, "pull_request", &v1alpha1.Plan{HeadSHA: sha}
	for _, text := range runs {
		name, outcome, _ := strings.Cut(text, " ")
		run := v1alpha1.Run{Pipeline: name, Name: name + "-run"}
		switch outcome {
		case "refused":
			run.Refused = &v1alpha1.Refusal{Reason: "BadYAML"}
		case "running":
		default:
			run.Result = &v1alpha1.Result{Outcome: v1alpha1.Outcome(outcome)}
		}
		event.Status.Runs = append(event.Status.Runs, run)
	}
	if settled {
		event.Status.Phase = v1alpha1.PhaseSettled
	}
	return history.Record{Event: event}
}

func TestRetestStartsUnsuccessfulPipelines(t *testing.T) {
	t.Parallel()
	unplanned := recorded(sha, false)
	unplanned.Event.Status.Plan = nil
	labelled := recorded(sha, false)
	labelled.Event.Status.Plan, labelled.Event.Spec.EventType = nil, "pull_request_labeled"
	for name, test := range map[string]struct {
		records []history.Record
		want    []string
	}{
		"nothing ever ran": {nil, []string{"a", "b", "c"}},
		"another commit's runs do not count": {
			[]history.Record{recorded(defaultSHA, true, "a Succeeded", "b Succeeded")}, []string{"a", "b", "c"},
		},
		"what failed, was cancelled or deleted": {
			[]history.Record{recorded(sha, true, "a Failed", "b Cancelled", "c Deleted")}, []string{"a", "b", "c"},
		},
		"what succeeded is left": {
			[]history.Record{recorded(sha, true, "a Failed", "b Succeeded")}, []string{"a", "c"},
		},
		"what was refused": {
			[]history.Record{recorded(sha, true, "a refused", "b Succeeded", "c Succeeded")}, []string{"a"},
		},
		"what runs is left": {
			[]history.Record{recorded(sha, false, "a running", "b Failed", "c Succeeded")}, []string{"b"},
		},
		"what was received first and runs last": {[]history.Record{
			recorded(sha, false, "a running", "b Succeeded", "c Succeeded"), recorded(sha, true, "a Failed"),
		}, nil},
		"what an event that gave up left behind": {
			[]history.Record{recorded(sha, true, "a running", "b Succeeded", "c Succeeded")}, []string{"a"},
		},
		"a later failure hides an older success": {[]history.Record{
			recorded(sha, true, "a Succeeded", "b Succeeded", "c Succeeded"), recorded(sha, true, "b Failed"),
		}, []string{"b"}},
		"a later success hides an older failure": {[]history.Record{
			recorded(sha, true, "a Failed", "b Failed", "c Failed"), recorded(sha, true, "b Succeeded"),
		}, []string{"a", "c"}},
		"the commit's own event is about to begin": {
			[]history.Record{recorded(sha, true, "a Failed"), unplanned}, []string{"a"},
		},
		"a label's event does not begin the rest": {
			[]history.Record{recorded(sha, true, "a Succeeded"), labelled}, []string{"b", "c"},
		},
	} {
		w := written("/retest")
		w.files, w.records = []git.File{pulled("a"), pulled("b"), pulled("c"), pipeline("pushed")}, test.records
		made := w.make(t, commentedHere())
		if diff := cmp.Diff(test.want, created(made)); diff != "" || w.count("records") != 1 ||
			made.Spec.EventType != "retest-all-comment" {
			t.Errorf("%s: asked %v: %s", name, w.asked, diff)
		}
	}
}

// commentedHere is a comment on a pull request from the repository itself, which needs no approval.
func commentedHere() plan.Input {
	in := commented()
	in.Event.Spec.PullRequest.HeadProjectID = in.Event.Spec.Project.ID
	return in
}

func TestRetestOfSuccessStartsNothing(t *testing.T) {
	t.Parallel()
	done := []history.Record{recorded(sha, true, "a Succeeded")}
	w := written("/retest")
	w.files, w.records = []git.File{pulled("a")}, done
	made := w.make(t, commentedHere())
	if len(made.Runs) != 0 || made.Reason != "NothingToRetest" ||
		reasons(made)["a"] != "its latest run on this commit, a-run, succeeded" {
		t.Errorf("%+v", made)
	}
	for _, comment := range []string{"/retest a", "/test", "/test a"} {
		w := written(comment)
		w.files, w.records = []git.File{pulled("a")}, done
		if made := w.make(t, commentedHere()); len(created(made)) != 1 || w.count("records") != 0 {
			t.Errorf("%q starts %v, asked %v", comment, created(made), w.asked)
		}
	}
	w = written("/retest")
	w.files, w.recordsErr = []git.File{pulled("a"), pulled("b")}, down()
	if made := w.make(t, commentedHere()); len(made.Runs) != 0 || made.Wait == nil || w.count("records") != 1 {
		t.Errorf("while it is not known what ran: %+v, asked %v", made, w.asked)
	}
	w.files = []git.File{pipeline("pushed")}
	w.asked = nil
	if made := w.make(t, commentedHere()); made.Reason != "NoMatch" || w.count("records") != 0 {
		t.Errorf("nothing is selected: %+v, asked %v", made, w.asked)
	}
}

// A comment that approves a commit starts what earlier events would have started, however late
// those are planned. Events in its second or later come after it.
func TestOlderEventSkipsPipelinesOfApproval(t *testing.T) {
	t.Parallel()
	approval := approvedBefore(sha, "main") // in the third second
	approval.Event.Status.Runs = []v1alpha1.Run{{Pipeline: "a"}}
	for happened, runs := range map[int]int{1: 0, 2: 0, 3: 1, 4: 1} {
		in := forked()
		in.Event.Spec.Action, in.Event.Spec.HappenedAt, in.Event.Spec.ReceivedAt = "reopened", second(happened), *second(4)
		w := &env{
			files: []git.File{pipeline("a", `on-cel-expression: 'event_type != ""'`)}, records: []history.Record{approval},
		}
		if made := w.make(t, in); len(made.Runs) != runs {
			t.Errorf("of second %d: %d runs, want %d: %+v", happened, len(made.Runs), runs, made.Decisions)
		}
	}
}
