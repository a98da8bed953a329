// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// planWithPaC plans with PipelineRuns of Pipelines-as-Code in the namespace: "a=Succeeded a=Failed
// a=" is one pipeline's, the newest last. It returns which were read, too.
func (w *env) planWithPaC(
	t *testing.T, in plan.Input, runs string, err error,
) (*plan.Plan, []history.PaCRunsOf) {
	t.Helper()
	sources, asked := w.sources(), []history.PaCRunsOf(nil)
	sources.Cancels = cancels("", nil)
	sources.PaCRuns = func(_ context.Context, of history.PaCRunsOf) ([]history.PaCRun, error) {
		asked = append(asked, of)
		var all []history.PaCRun
		for _, text := range strings.Fields(runs) {
			name, end, _ := strings.Cut(text, "=")
			all = append(all, history.PaCRun{
				Name: strings.TrimSuffix(name, "-") + "-x7k2p", Pipeline: name, Finished: end != "", Succeeded: end == "Succeeded",
			})
		}
		return all, err
	}
	made, makeErr := plan.Make(t.Context(), in, sources)
	if makeErr != nil {
		t.Fatal(makeErr)
	}
	return made, asked
}

// A success of before the move counts as long as Plumbline itself has run nothing of the pipeline.
func TestRetestCountsRunsOfPaC(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		records []history.Record
		runs    string
		want    []string
	}{
		"nothing":                       {nil, "", []string{"a", "b", "c"}},
		"a success, a failure, a run":   {nil, "a=Succeeded b=Failed c=", []string{"b"}},
		"a newer failure":               {nil, "a=Succeeded a=Failed b=Failed b=Succeeded", []string{"a", "c"}},
		"a run, and a newer result":     {nil, "a= a=Failed b= b=Succeeded", []string{"c"}},
		"the name of a generateName":    {nil, "a-=Succeeded", []string{"b", "c"}},
		"a run of Plumbline is newer":   {[]history.Record{recorded(sha, true, "a Failed")}, "a=Succeeded", []string{"a", "b", "c"}},
		"a success of Plumbline counts": {[]history.Record{recorded(sha, true, "a Succeeded")}, "a=Failed", []string{"b", "c"}},
	} {
		w := written("/retest")
		w.files, w.records = []git.File{pulled("a"), pulled("b"), pulled("c")}, test.records
		made, asked := w.planWithPaC(t, commentedHere(), test.runs, nil)
		want := []history.PaCRunsOf{{Repository: "app", SHA: sha, Pull: 3, Ref: "main"}}
		if diff := cmp.Diff(test.want, created(made)) + cmp.Diff(want, asked); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	w := written("/retest")
	w.files, w.records = []git.File{pulled("a")}, nil
	made, _ := w.planWithPaC(t, commentedHere(), "a=Succeeded", nil)
	const why = "its latest run on this commit, a-x7k2p of Pipelines-as-Code, succeeded"
	if made.Reason != "NothingToRetest" || reasons(made)["a"] != why {
		t.Errorf("%s: %v", made.Reason, reasons(made))
	}
}

func TestRetestReadsRunsOfPaCOnlyForUnrecordedPipelines(t *testing.T) {
	t.Parallel()
	for _, comment := range []string{"/retest", "/retest a", "/test"} {
		w := written(comment)
		w.files, w.records = []git.File{pulled("a")}, []history.Record{recorded(sha, true, "a Failed")}
		if made, asked := w.planWithPaC(t, commentedHere(), "", nil); len(asked) != 0 || len(made.Runs) != 1 {
			t.Errorf("%s reads %v and starts %v", comment, asked, created(made))
		}
	}
}

// A failed read is no answer: the pipeline waits (S12).
func TestRetestWaitsForRunsOfPaC(t *testing.T) {
	t.Parallel()
	w := written("/retest")
	w.files = []git.File{pulled("a"), pulled("b")}
	made, asked := w.planWithPaC(t, commentedHere(), "", down())
	if len(made.Runs) != 0 || made.Wait == nil || len(asked) != 1 {
		t.Errorf("%+v, asked %v", made, asked)
	}
}

// /cancel ends what Plumbline has recorded. It names what Pipelines-as-Code still runs (S26).
func TestCancelNamesRunsOfPaC(t *testing.T) {
	t.Parallel()
	const left = "Pipelines-as-Code started these before the move, and they are not cancelled: "
	for name, test := range map[string]struct{ comment, runs, want string }{
		"all":           {"/cancel", "a=Failed a= b=", left + "a-x7k2p, b-x7k2p. "},
		"named":         {"/cancel b", "a= b-=", left + "b-x7k2p. "},
		"many":          {"/cancel", "a= b= c= d= e= f= g=", left + "a-x7k2p, b-x7k2p, c-x7k2p, d-x7k2p, e-x7k2p and 2 more. "},
		"finished ones": {"/cancel", "a=Failed", "member requested it in a comment"},
	} {
		w := written(test.comment)
		sources := happened(commentedHere())
		sources.Event.Spec.Sender = "member"
		made, asked := w.planWithPaC(t, sources, test.runs, nil)
		if !strings.HasPrefix(made.Message, test.want) || made.Disposition != v1alpha1.DispositionCancels ||
			made.Cancels.Why != "member requested it in a comment" {
			t.Errorf("%s: %s %q, asked %v", name, made.Disposition, made.Message, asked)
		}
		if diff := cmp.Diff([]history.PaCRunsOf{{Repository: "app", Pull: 3, Ref: "main"}}, asked); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
