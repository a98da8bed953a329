// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// pressed is a re-run request by a user with write access.
func pressed(rerun v1alpha1.Rerun) plan.Input {
	in := push()
	in.Event.Name, in.Event.Spec.Rerun, in.Event.Spec.Sender = "rerun-9", &rerun, "presser"
	return in
}

// ran is the record of an event with these results of its pipelines, all in one file each:
// "a=Succeeded b=" with nothing for an unfinished run.
func ran(in plan.Input, name, ended string) history.Record {
	event := &v1alpha1.GitEvent{Spec: *in.Event.Spec.DeepCopy()}
	event.Name, event.Status.Plan = name, &v1alpha1.Plan{HeadSHA: sha}
	for _, one := range strings.Fields(ended) {
		pipeline, outcome, _ := strings.Cut(one, "=")
		file := ".tekton/" + pipeline + ".yaml"
		run := v1alpha1.Run{Pipeline: pipeline + " of today", Name: resources.RunName(name, file, 0, pipeline), UID: "1"}
		switch outcome {
		case "":
		case "Refused":
			run.UID, run.Refused = "", &v1alpha1.Refusal{}
		default:
			run.Result = &v1alpha1.Result{Outcome: v1alpha1.Outcome(outcome)}
		}
		event.Status.Plan.Decisions = append(event.Status.Plan.Decisions, v1alpha1.Decision{File: file, Pipeline: pipeline})
		event.Status.Runs = append(event.Status.Runs, run)
	}
	return history.Record{Event: event}
}

// ofPull is a pull request of a branch of this repository.
func ofPull(number int64) plan.Input {
	in := forked()
	in.Event.Spec.PullRequest.Number, in.Event.Spec.PullRequest.HeadProjectID = number, 5
	return in
}

// described answers with the pull request as the Git service has it.
func described(head string, project int64, author string) func(*v1alpha1.GitEventSpec) {
	return func(s *v1alpha1.GitEventSpec) {
		if s.PullRequest != nil {
			s.SHA, s.BaseRef, s.HeadRef, s.PullRequest.HeadProjectID, s.PullRequest.Author = head, "main", "topic", project,
				author
		}
	}
}

// One check is one pipeline, whatever its annotations say: of a push or a pull request, with
// placeholders in its name, refused before, or as the re-run of a re-run.
func TestRerunOfOneCheck(t *testing.T) {
	t.Parallel()
	runOf := func(event, pipeline string) string {
		return resources.RunName(event, ".tekton/"+pipeline+".yaml", 0, pipeline)
	}
	tag := push()
	tag.Event.Spec.BaseRef, tag.Event.Spec.HeadRef = "refs/tags/v1", "refs/tags/v1"
	rerunOf := func(event, pipeline string) plan.Input {
		return pressed(v1alpha1.Rerun{Check: "Pipelines as Code CI / " + pipeline, ExternalID: runOf(event, pipeline)})
	}
	for name, c := range map[string]struct {
		byNumber map[int64][]history.Record
		external string
		pulls    []int64
		ref      string
		number   int64
	}{
		"of a push": {map[int64][]history.Record{0: {ran(tag, "push-1", "a=Failed b=Failed")}},
			runOf("push-1", "b"), nil, "refs/tags/v1", 0},
		"of a push with a pull request": {map[int64][]history.Record{
			0: {ran(push(), "push-1", "b=Failed")}, 4: {ran(ofPull(4), "pull-1", "b=Failed")},
		}, runOf("push-1", "b"), []int64{4}, "refs/heads/main", 0},
		"of a pull request": {map[int64][]history.Record{4: {ran(ofPull(4), "pull-1", "a=Failed b=Refused")}},
			runOf("pull-1", "b"), []int64{4}, "main", 4},
		"of one that the service names": {
			map[int64][]history.Record{7: {ran(ofPull(7), "pull-1", "b=Succeeded")}}, runOf("pull-1", "b"), nil, "main", 7,
		},
		"of a pull request's re-run": {map[int64][]history.Record{4: {ran(rerunOf("pull-1", "b"), "rerun-1",
			"b=Failed")}}, runOf("rerun-1", "b"), []int64{4}, "main", 4},
		"of a tag's re-run, with a branch": {map[int64][]history.Record{0: {
			ran(push(), "push-1", "b=Failed"), ran(tag, "push-2", "b=Failed"),
			ran(rerunOf("push-2", "b"), "rerun-1", "b=Failed"), ran(rerunOf("rerun-1", "b"), "rerun-2", "b=Failed"),
		}}, runOf("rerun-2", "b"), nil, "refs/tags/v1", 0},
		"of Pipelines-as-Code, with a pull request": {nil, "b-0123", []int64{4}, "main", 4},
		"of Pipelines-as-Code, of a push":           {nil, "b-0123", nil, "refs/heads/topic", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := pressed(v1alpha1.Rerun{Check: "Pipelines as Code CI / b", ExternalID: c.external, Pulls: c.pulls})
			in.Event.Spec.BaseRef, in.Event.Spec.HeadRef = "refs/heads/topic", "refs/heads/topic"
			w := &past{env: &env{
				writers: "presser author", files: []git.File{pipeline("a"), edited(pipeline("b"), "[push]", "[incoming]")},
			}, byNumber: c.byNumber}
			w.true = described(sha, 5, "author")
			if c.number == 7 {
				w.pulls = []git.Pull{{Number: 6}, {Number: 7, Open: true}}
			}
			made, err := w.make(t, in)
			if err != nil {
				t.Fatal(err)
			}
			number, subject := int64(0), in.Event.Spec.DeepCopy()
			if pr := made.Spec.PullRequest; pr != nil {
				number, subject.PullRequest = pr.Number, pr
			}
			if diff := cmp.Diff([]string{"b"}, created(made)); diff != "" || made.Spec.BaseRef != c.ref || number != c.number ||
				made.HeadSHA != sha || w.about != subject.Subject() {
				t.Errorf("%s to %q of pull request %d at %s, about %s: %v", diff, made.Spec.BaseRef, number, made.HeadSHA, w.about,
					made.Decisions)
			}
			// A user who closes the pull request afterwards cancels it with the pull request's
			// events.
			if about, complete := slices.Index(w.asked, "about"), slices.Index(w.asked, "complete"); about < 0 ||
				complete < about {
				t.Errorf("%v, want it written down what it is about before the Git service is asked", w.asked)
			}
			if want := map[bool]string{true: "pull_request", false: "push"}[number != 0]; made.Spec.EventType != want ||
				string(made.Spec.Trigger) != want {
				t.Errorf("%s %s, want %s", made.Spec.Trigger, made.Spec.EventType, want)
			}
		})
	}
}

// All checks are those whose newest run did not succeed, or all finished ones if each succeeded;
// unfinished ones are never included.
func TestRerunOfAllChecks(t *testing.T) {
	t.Parallel()
	tag := push()
	tag.Event.Spec.BaseRef = "refs/tags/v1"
	skipped := ran(push(), "push-1", "")
	skipped.Event.Status.Disposition = v1alpha1.DispositionSkipped
	gaveUp := ran(push(), "push-1", "a=Succeeded b=")
	gaveUp.Event.Status.Phase = v1alpha1.PhaseSettled
	ignored := ran(push(), "push-1", "")
	ignored.Event.Status.Disposition = v1alpha1.DispositionIgnored
	all := func(name, ended string) history.Record { return ran(pressed(v1alpha1.Rerun{All: true}), name, ended) }
	for name, c := range map[string]struct {
		byNumber map[int64][]history.Record
		want     []string
		number   int64
		ref      string
	}{
		"the failed, cancelled, deleted, refused": {map[int64][]history.Record{
			0: {ran(push(), "push-1", "a=Failed b=Succeeded c=Cancelled d=Refused")},
		}, []string{"a", "c", "d"}, 0, "refs/heads/main"},
		"not what succeeded meanwhile": {map[int64][]history.Record{
			0: {ran(push(), "push-1", "a=Failed b=Failed"), all("rerun-1", "a=Succeeded b=Failed")},
		}, []string{"b"}, 0, "refs/heads/main"},
		"what failed meanwhile": {map[int64][]history.Record{
			0: {ran(push(), "push-1", "a=Failed b=Succeeded"), all("rerun-1", "a=Succeeded b=Failed")},
		}, []string{"b"}, 0, "refs/heads/main"},
		"not what runs": {map[int64][]history.Record{
			0: {ran(push(), "push-1", "a=Failed b=Failed"), all("rerun-1", "a=")},
		}, []string{"b"}, 0, "refs/heads/main"},
		"not what was received first, runs last": {map[int64][]history.Record{
			0: {ran(push(), "push-1", "a= b=Succeeded"), all("rerun-1", "a=Failed")},
		}, nil, 0, "refs/heads/main"},
		"nothing while all of it runs": {
			map[int64][]history.Record{0: {ran(push(), "push-1", "a= b=")}}, nil, 0, "refs/heads/main",
		},
		"all of a green commit": {map[int64][]history.Record{0: {ran(push(), "push-1",
			"a=Succeeded b=Succeeded")}}, []string{"a", "b"}, 0, "refs/heads/main"},
		"nothing of one that is no failure yet": {
			map[int64][]history.Record{0: {ran(push(), "push-1", "a=Succeeded b=Succeeded c=")}}, nil, 0, "refs/heads/main",
		},
		"what an event that gave up left": {
			map[int64][]history.Record{0: {gaveUp}}, []string{"b"}, 0, "refs/heads/main",
		},
		"not what runs of an event as a whole": {
			map[int64][]history.Record{0: {skipped, all("rerun-1", "a=")}}, nil, 0, "refs/heads/main",
		},
		"the pull request before the push": {map[int64][]history.Record{
			4: {ran(ofPull(4), "pull-1", "a=Failed")}, 0: {ran(push(), "push-1", "b=Failed")},
		}, []string{"a"}, 4, "main"},
		"the push, if only it failed": {map[int64][]history.Record{
			4: {ran(ofPull(4), "pull-1", "a=Succeeded")}, 0: {ran(push(), "push-1", "b=Failed")},
		}, []string{"b"}, 0, "refs/heads/main"},
		"the pull request, if the push was none": {
			map[int64][]history.Record{4: {ran(ofPull(4), "pull-1", "a=Succeeded")}, 0: {ignored}}, []string{"a"}, 4, "main",
		},
		"one ref's": {map[int64][]history.Record{
			0: {ran(push(), "push-1", "a=Failed b=Failed"), ran(tag, "push-2", "b=Failed")},
		}, []string{"b"}, 0, "refs/tags/v1"},
		"what was skipped": {
			map[int64][]history.Record{0: {skipped}}, []string{"a", "b", "c", "d"}, 0, "refs/heads/main",
		},
		"whatever is for it, with no record": {nil, []string{"a", "b", "c", "d"}, 0, "refs/heads/main"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &past{env: &env{writers: "presser author", skipCI: true,
				files: []git.File{pipeline("a"), pipeline("b"), pipeline("c"), pipeline("d")}}, byNumber: c.byNumber}
			w.true = described(sha, 5, "author")
			rerun := v1alpha1.Rerun{All: true}
			if c.byNumber[4] != nil {
				rerun.Pulls = []int64{4}
			}
			made, err := w.make(t, pressed(rerun))
			if err != nil {
				t.Fatal(err)
			}
			number := int64(0)
			if made.Spec.PullRequest != nil {
				number = made.Spec.PullRequest.Number
			}
			if diff := cmp.Diff(c.want, created(made)); diff != "" || number != c.number || made.Spec.BaseRef != c.ref {
				t.Errorf("%s of pull request %d to %s, want %d to %s: %v", diff, number, made.Spec.BaseRef, c.number, c.ref,
					made.Decisions)
			}
		})
	}
}
