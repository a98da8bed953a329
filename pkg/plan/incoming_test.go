// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// requested is a request to /incoming for a pipeline of the branch main.
func requested(pipeline string, params map[string]string) plan.Input {
	in := push()
	spec := in.Event.Spec
	spec.EventType, spec.Sender, spec.SHA = v1alpha1.EventIncoming, v1alpha1.EventIncoming, ""
	spec.Incoming = &v1alpha1.Incoming{Pipeline: pipeline, Params: params}
	return in
}

// atTip is an env whose branch main is at sha.
func atTip(files ...git.File) *env {
	return &env{files: files, true: func(spec *v1alpha1.GitEventSpec) { spec.SHA = sha }}
}

// generated is a pipeline with a generateName in place of the name.
func generated(file git.File) git.File {
	name := strings.TrimSuffix(strings.TrimPrefix(file.Path, ".tekton/"), ".yaml")
	file.Data = []byte(strings.Replace(string(file.Data), "name: "+name, "generateName: "+name+"-", 1))
	return file
}

func TestIncomingStartsTheNamedPipeline(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file    git.File
		request string
		want    []string
	}{
		"by name":                             {pipeline("a"), "a", []string{"a"}},
		"by name, whatever it runs for":       {edited(pipeline("a"), "[push]", "[pull_request]"), "a", []string{"a"}},
		"by name, for incoming":               {edited(pipeline("a"), "[push]", "[incoming]"), "a", []string{"a"}},
		"by generateName":                     {generated(pipeline("a")), "a-", []string{"a-"}},
		"by generateName without dash":        {generated(pipeline("a")), "a", []string{"a-"}},
		"by generateName, for incoming":       {generated(edited(pipeline("a"), "[push]", "[incoming]")), "a-", []string{"a-"}},
		"by generateName, of another branch":  {generated(edited(pipeline("a"), "[main]", "[release]")), "a-", nil},
		"by generateName, for pull requests":  {generated(edited(pipeline("a"), "[push]", "[pull_request]")), "a-", nil},
		"by generateName, an expression":      {generated(pipeline("a", `on-cel-expression: event == "push" && event_type == "incoming"`)), "a-", []string{"a-"}},
		"by generateName, another expression": {generated(pipeline("a", `on-cel-expression: event == "pull_request"`)), "a-", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := atTip(c.file, pipeline("other")).make(t, requested(c.request, nil))
			if diff := cmp.Diff(c.want, created(made)); diff != "" {
				t.Fatalf("%s\n%v", diff, reasons(made))
			}
			if made.HeadSHA != sha || made.Spec.SHA != sha {
				t.Errorf("the plan is for %q", made.HeadSHA)
			}
			if c.want == nil &&
				(made.Disposition != v1alpha1.DispositionIgnored || !strings.Contains(made.Message, "nothing was started: a-: on-")) {
				t.Errorf("%s: %s", made.Disposition, made.Message)
			}
		})
	}
}

// A push starts only what is for pushes.
func TestPushDoesNotStartPipelinesForIncoming(t *testing.T) {
	t.Parallel()
	w := &env{files: []git.File{edited(pipeline("a"), "[push]", "[incoming]"), pipeline("b")}}
	if diff := cmp.Diff([]string{"b"}, created(w.make(t, push()))); diff != "" {
		t.Error(diff)
	}
}

func TestIncomingNamesUnknownPipeline(t *testing.T) {
	t.Parallel()
	made := atTip(pipeline("build"), pipeline("push")).make(t, requested("biuld", nil))
	const want = "nothing was started: no pipeline is called biuld. Did you mean build? (All: build, push)"
	if made.Disposition != v1alpha1.DispositionIgnored || made.Reason != "UnknownName" || made.Message != want ||
		len(made.Runs) > 0 {
		t.Errorf("%s %s: %s", made.Disposition, made.Reason, made.Message)
	}
}

// The request is as explicit as a command: it does not depend on what the commit's message says.
func TestIncomingStartsCommitWithSkipCI(t *testing.T) {
	t.Parallel()
	w := atTip(pipeline("a"))
	w.skipCI = true
	if diff := cmp.Diff([]string{"a"}, created(w.make(t, requested("a", nil)))); diff != "" {
		t.Error(diff)
	}
}

// A push to the branch of an open pull request is left to the pull request's own event.
func TestIncomingIsNotLeftToThePullRequest(t *testing.T) {
	t.Parallel()
	w := atTip(pipeline("a"))
	w.pulls = []git.Pull{{Number: 3, Open: true, SHA: sha, HeadRef: "main", HeadProjectID: 5}}
	if diff := cmp.Diff([]string{"a"}, created(w.make(t, requested("a", nil)))); diff != "" || w.count("pulls") > 0 {
		t.Error(diff, w.asked)
	}
}

func TestIncomingParamsReplaceVariables(t *testing.T) {
	t.Parallel()
	w := atTip(pipeline(
		"a",
		`say: "{{ version }} {{ source_url }} {{ pull_request_number }} {{ event_type }} {{ trigger_target }} {{ sender }} {{ event }}"`,
		`body: "{{ body.params.version }}"`,
	))
	w.payload = `{"params": {"version": "1.2"}}`
	in := requested(
		"a",
		map[string]string{"version": "1.2", "source_url": "https://elsewhere.example/x", "pull_request_number": "12"},
	)
	in.Repository.Spec.Params = &[]pacv1alpha1.Params{
		{Name: "version", Value: "0"},
		{Name: "trigger_target", Value: "own"},
	}
	run := decoded(t, w.make(t, in).Runs[0])
	const prefix = "pipelinesascode.tekton.dev/"
	if got := run.Annotations[prefix+"say"]; got != "1.2 https://elsewhere.example/x 12 incoming own incoming push" {
		t.Errorf("the variables are %q", got)
	}
	if got := run.Annotations[prefix+"body"]; got != "1.2" {
		t.Errorf("the body's are %q", got)
	}
	for key, want := range map[string]string{
		"event-type": "incoming", "sender": "incoming", "branch": "refs/heads/main", "sha": sha,
	} {
		if got := run.Annotations[prefix+key]; got != want {
			t.Errorf("annotation %s is %q, want %q", key, got, want)
		}
	}
	if got := run.Labels[prefix+"event-type"]; got != "incoming" {
		t.Errorf("label event-type is %q", got)
	}
}

func TestIncomingForMissingBranchEnds(t *testing.T) {
	t.Parallel()
	w := atTip(pipeline("a"))
	w.completeErr = fault.Ignoredf("RefNotFound", "nothing was started: acme/app has no branch gone")
	_, err := plan.Make(t.Context(), requested("a", nil), w.sources())
	var over *plan.IgnoredError
	if !errors.As(err, &over) || over.Why.Reason != "RefNotFound" {
		t.Error(err)
	}
}

// What is decided stays at the commit at which it was decided.
func TestIncomingStaysAtItsCommit(t *testing.T) {
	t.Parallel()
	w := atTip(pipeline("a"))
	made := w.make(t, requested("a", nil))
	w.true = func(spec *v1alpha1.GitEventSpec) { spec.SHA = defaultSHA }
	if later := w.make(t, again(requested("a", nil), made)); later.HeadSHA != sha || later.Spec.SHA != sha {
		t.Errorf("planned again at %s", later.HeadSHA)
	}
}
