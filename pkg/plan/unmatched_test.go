// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// unmatched returns the names of the checks that say that a pipeline is not started.
func unmatched(made *plan.Plan) (names []string) {
	for _, run := range made.Runs {
		if run.Unmatched() {
			names = append(names, run.Pipeline)
		}
	}
	return names
}

func reporting(in plan.Input, what pacv1alpha1.Unmatched) plan.Input {
	in.Repository.Spec.Settings = &pacv1alpha1.Settings{Unmatched: what}
	return in
}

// ownBranch is a pull request of a branch of the repository.
func ownBranch() plan.Input {
	in := forked()
	in.Event.Spec.PullRequest.HeadProjectID = 5
	return in
}

// withExpression returns a pipeline that starts for this on-cel-expression.
func withExpression(name, text string) git.File {
	return edited(pipeline(name), `on-event: "[push]"`, "on-cel-expression: '"+text+"'",
		`    pipelinesascode.tekton.dev/on-target-branch: "[main]"`+"\n", "")
}

// monorepo returns pipelines that a change of README.md does not start, for one reason each.
func monorepo() []git.File {
	return []git.File{
		pipeline("docs", "on-path-change: '*.md'"),
		pipeline("paths-{{ event_type }}", "on-path-change: 'src/**'"),
		pipeline("ignored", "on-path-change-ignore: '*.md'"),
		pipeline("label", "on-label: bug", "on-path-change: 'src/**'"),
		edited(pipeline("branch", "on-path-change: 'src/**'"), "[main]", "[other]"),
		edited(pipeline("event", "on-path-change: 'src/**'"), "[push]", "[incoming]"),
		pipeline("elsewhere", "target-namespace: other", "on-path-change: 'src/**'"),
		withExpression("cel-paths", `event == "push" && "src/**".pathChanged() && target_branch == "main"`),
		withExpression("cel-files", `event == "push" && files.all.exists(f, f == "x") && target_branch == "main"`),
		withExpression("cel-branch", `event == "push" && "src/**".pathChanged() && target_branch == "other"`),
		withExpression("cel-pulls", `"src/**".pathChanged() && target_branch == "main"`),
		edited(pipeline("by-name"), `    pipelinesascode.tekton.dev/on-event: "[push]"`+"\n", "",
			`    pipelinesascode.tekton.dev/on-target-branch: "[main]"`+"\n", ""),
	}
}

func TestUnmatchedPipelinesGetChecks(t *testing.T) {
	t.Parallel()
	paths := []string{"paths-push", "ignored", "cel-paths", "cel-files"}
	all := []string{"paths-push", "ignored", "label", "branch", "event", "cel-paths", "cel-files", "cel-branch"}
	for what, want := range map[pacv1alpha1.Unmatched][]string{
		"": nil, pacv1alpha1.UnmatchedPaths: paths, pacv1alpha1.UnmatchedAll: all,
	} {
		t.Run(string(what), func(t *testing.T) {
			t.Parallel()
			w := &env{files: monorepo(), changed: git.Changes{Modified: []string{"README.md"}}}
			made := w.make(t, reporting(push(), what))
			if diff := cmp.Diff(want, unmatched(made)); diff != "" {
				t.Errorf("checks (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"docs"}, created(made)); diff != "" || made.Disposition != v1alpha1.DispositionRuns ||
				!strings.HasPrefix(made.Message, "1 of 12 pipelines") {
				t.Errorf("%s, %s: %s", made.Disposition, made.Message, diff)
			}
		})
	}
	w := &env{files: monorepo()[1:], changed: git.Changes{Modified: []string{"README.md"}}}
	made := w.make(t, reporting(push(), pacv1alpha1.UnmatchedPaths))
	if made.Disposition != v1alpha1.DispositionIgnored || made.Reason != "NoMatch" || len(made.Runs) != 4 ||
		made.Runs[0].Refused.Message != "on-path-change [src/**] matches no changed file (changed: README.md)" {
		t.Errorf("%s, %s: %+v, want it ignored with four checks", made.Disposition, made.Reason, made.Runs)
	}
}

func TestUnmatchedChecksAreForOwnEventsOnly(t *testing.T) {
	t.Parallel()
	label := func(in plan.Input) plan.Input { in.Event.Spec.EventType = match.LabelEvent; return in }
	const both = "[push, pull_request]"
	readme := git.Changes{Modified: []string{"README.md"}}
	for name, c := range map[string]struct {
		in   plan.Input
		env  env
		want []string
		on   string
	}{
		"a pull request":            {ownBranch(), env{writers: "author"}, []string{"a"}, both},
		"a pull request that waits": {forked(), env{}, nil, both},
		"an approval": {saying("member"), env{
			writers: "member", said: "/ok-to-test", moved: sha,
			records: []history.Record{onRecord("pull-1", sha, 1, v1alpha1.DispositionPending)},
		}, []string{"a"}, both},
		"a label":                               {label(ownBranch()), env{writers: "author"}, nil, both},
		"a command":                             {commented(), env{writers: "member author", said: "/test", moved: sha}, []string{"a"}, both},
		"a command named":                       {commented(), env{writers: "member author", said: "/test a", moved: sha}, nil, both},
		"a comment":                             {commented(), env{writers: "member author", said: "hello", moved: sha}, nil, both},
		"a push":                                {staging(), env{}, []string{"a"}, "[push]"},
		"a push that a pull request may follow": {staging(), env{}, nil, both},
		"a push to the branch of a pull":        {staging(), env{pulls: []git.Pull{ownPull(nil)}}, nil, "[push]"},
		"a push without an answer about pulls":  {staging(), env{pullsErr: down()}, nil, "[push]"},
		"an incomplete list of files": {
			ownBranch(), env{writers: "author", changed: git.Changes{Modified: []string{"README.md"}, Truncated: true}}, nil,
			both,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := pipeline("a", "on-path-change: 'src/**'")
			c.env.files = []git.File{edited(a, "[push]", c.on, "[main]", "[main, staging]")}
			if c.env.changed.Modified == nil {
				c.env.changed = readme
			}
			for _, what := range []pacv1alpha1.Unmatched{pacv1alpha1.UnmatchedPaths, pacv1alpha1.UnmatchedAll} {
				made, err := plan.Make(t.Context(), reporting(c.in, what), c.env.sources())
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, unmatched(made)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
		})
	}
}

// A pipeline that starts keeps its name, whatever is not started, and in whatever attempt it is
// decided.
func TestUnmatchedChecksLeaveNamesToRuns(t *testing.T) {
	t.Parallel()
	named := func(file, name string, annotations ...string) git.File {
		return edited(pipeline(file, annotations...), "name: "+file+"\n", "name: "+name+"\n")
	}
	w := &env{
		files: []git.File{
			named("no", "build-{{ event_type }}", "on-path-change: 'src/**'"),
			named("yes", "build-{{ event }}", "task: https://git.example/t.yaml"),
		},
		changed: git.Changes{Modified: []string{"README.md"}}, addressErr: down(),
		tree: map[string]string{"https://git.example/t.yaml": task},
	}
	in := reporting(push(), pacv1alpha1.UnmatchedPaths)
	made := w.make(t, in)
	if made.Wait == nil || !slices.Equal(unmatched(made), []string{"build-push"}) {
		t.Fatalf("waits for %v, %+v", made.Wait, made.Runs)
	}
	w.addressErr = nil
	made = w.make(t, again(in, made))
	if made.Wait != nil || !slices.Equal(created(made), []string{"build-push"}) ||
		!slices.Equal(unmatched(made), []string{"build-push"}) {
		t.Errorf("waits for %v, %+v", made.Wait, made.Runs)
	}
}

func TestUnmatchedChecksAreLimited(t *testing.T) {
	t.Parallel()
	var files []git.File
	for i := range v1alpha1.MaxRuns + 1 {
		files = append(files, pipeline(fmt.Sprintf("p%03d", i), "on-path-change: 'src/**'"))
	}
	w := &env{files: append(files, pipeline("q")), changed: git.Changes{Modified: []string{"README.md"}}}
	made := w.make(t, reporting(push(), pacv1alpha1.UnmatchedPaths))
	if len(made.Runs) != v1alpha1.MaxRuns || len(created(made)) != 1 {
		t.Errorf("%d runs, %d are created", len(made.Runs), len(created(made)))
	}
}
