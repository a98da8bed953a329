// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/status"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// bench is a commit to report on.
type bench struct {
	*fake
	client provider.Client
	head   git.Head
}

func newBench(t *testing.T, o forgelab.Options) bench {
	t.Helper()
	f, w := openFake(t, o)
	client, err := w.Provider.Connect(t.Context(), w.BaseURL, w.Project, w.Credentials)
	if err != nil {
		t.Fatal(err)
	}
	sha := f.Commit("main", map[string]string{"x": "y"})
	return bench{fake: f, client: client, head: git.Head{SHA: sha, Project: w.Project, Ref: "refs/heads/main"}}
}

func check(state status.State, conclusion status.Conclusion) status.Check {
	return status.Check{
		Key: "run", Name: "Plumbline / build", ExternalID: "build-1", State: state, Conclusion: conclusion,
		Title: "Title of " + string(state+status.State(conclusion)),
		Text:  "a table", DetailsURL: "https://console.example/build-1",
	}
}

func (b bench) put(t *testing.T, id string, c status.Check) string {
	t.Helper()
	id, err := b.client.Put(t.Context(), b.head, id, c, false)
	if err != nil || id == "" {
		t.Fatalf("Put %s%s: id %q, %v", c.State, c.Conclusion, id, err)
	}
	return id
}

// states lists what the commit shows, oldest first.
func (b bench) states(project string) string {
	var all []string
	for _, s := range b.StatusesFor(project, b.head.SHA) {
		all = append(all, s.State)
	}
	return strings.Join(all, " ")
}

func TestStates(t *testing.T) {
	cases := []struct {
		check status.Check
		want  string
	}{
		{check(status.Queued, ""), "pending"}, {check(status.InProgress, ""), "running"},
		{check(status.Completed, status.Success), "success"}, {check(status.Completed, status.Failure), "failed"},
		{check(status.Completed, status.Cancelled), "canceled"}, {check(status.Completed, status.Skipped), "skipped"},
	}
	for _, c := range cases {
		b := newBench(t, forgelab.Options{})
		b.put(t, "", c.check)
		shown := b.StatusesFor(testProject, b.head.SHA)[0]
		if shown.State != c.want || shown.Ref != "main" || shown.Description != c.check.Title+" (build-1)" ||
			shown.TargetURL != c.check.DetailsURL {
			t.Errorf("%+v, want %s", shown, c.want)
		}
	}
}

func TestSkippedIsCanceledOnOldServer(t *testing.T) {
	b := newBench(t, forgelab.Options{NoSkipped: true})
	skipped := check(status.Completed, status.Skipped)
	id := b.put(t, "", skipped)
	if again := b.put(t, id, skipped); again != id || b.states(testProject) != "canceled" {
		t.Errorf("%s, %s: %s", id, again, b.states(testProject))
	}
}

func TestDescriptionHasWordsWithoutURL(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	refused := check(status.Completed, status.Failure)
	refused.Title, refused.Text, refused.DetailsURL = "Not started: rejected by Tekton",
		"There was <b>an error</b>:\n\n```\nno such task\n```", ""
	refused.Words = "admission webhook said:\n no such task " + strings.Repeat("ü", 300)
	b.put(t, "", refused)
	got := b.StatusesFor(testProject, b.head.SHA)[0].Description
	if !strings.HasPrefix(got, "Not started: rejected by Tekton: admission webhook said: no such task") ||
		!strings.HasSuffix(got, "… (build-1)") || len([]rune(got)) != 255 {
		t.Errorf("%d characters: %s", len([]rune(got)), got)
	}
}

func TestPutIsIdempotentOnAllServers(t *testing.T) {
	for _, o := range []forgelab.Options{{}, {AcceptRepeated: true}} {
		b := newBench(t, o)
		id := b.put(t, "", check(status.Queued, ""))
		other := check(status.Queued, "")
		other.Title = "Waiting for quota"
		steps := []status.Check{check(status.Queued, ""), other, check(status.InProgress, ""), check(status.InProgress, ""),
			check(status.Queued, "")}
		for i, c := range steps {
			if again := b.put(t, id, c); again != id {
				t.Errorf("%+v, step %d: id %s, want %s", o, i, again, id)
			}
		}
		for range 2 {
			if again := b.put(t, id, check(status.Completed, status.Success)); again != id ||
				b.states(testProject) != "success" {
				t.Errorf("%+v: id %s, want %s: %s", o, again, id, b.states(testProject))
			}
		}
		for _, late := range []status.Check{check(status.InProgress, ""), check(status.Queued, "")} {
			if b.put(t, "", late); b.states(testProject) != "success" {
				t.Errorf("%+v: a late %s: %s", o, late.State, b.states(testProject))
			}
		}
	}
}

func TestNewRunReplacesStatusOfSameCommit(t *testing.T) {
	cases := []struct {
		name   string
		before status.Check
		want   string
	}{
		{"that has ended", check(status.Completed, status.Failure), "failed running"},
		{"that is still running is closed", check(status.InProgress, ""), "canceled running"},
		{"that is still queued is closed", check(status.Queued, ""), "canceled running"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, forgelab.Options{})
			first := b.put(t, "", c.before)
			again := check(status.InProgress, "")
			again.ExternalID, again.DetailsURL = "build-2", "https://console.example/build-2"
			second := b.put(t, "", again)
			if b.states(testProject) != c.want || strings.Split(first, "/")[0] != strings.Split(second, "/")[0] {
				t.Errorf("%s, then %s: %s, want %s", first, second, b.states(testProject), c.want)
			}
			if id := b.put(t, first, check(status.Completed, status.Success)); id != first || b.states(testProject) != c.want {
				t.Errorf("the run before reports as %s: %s", id, b.states(testProject))
			}
			shown, _ := b.Current(testProject, b.head.SHA, "Plumbline / build")
			if shown.TargetURL != again.DetailsURL {
				t.Errorf("%+v", shown)
			}
		})
	}
}

func TestRefusedTransitionIsCompared(t *testing.T) {
	refuse := func(b bench, count int) {
		b.Inject(forgelab.Fault{
			Route: forgelab.RouteStatusCreate, Count: count, Do: forgelab.CannotTransition400("run", "running"),
		})
	}
	t.Run("what is shown is what was meant", func(t *testing.T) {
		b := newBench(t, forgelab.Options{})
		id := b.put(t, "", check(status.InProgress, ""))
		other := check(status.InProgress, "")
		other.Title = "another"
		refuse(b, 1)
		if again := b.put(t, id, other); again != id {
			t.Errorf("got %s, want %s", again, id)
		}
	})
	t.Run("what is shown is something else", func(t *testing.T) {
		b := newBench(t, forgelab.Options{})
		id := b.put(t, "", check(status.InProgress, ""))
		refuse(b, 1)
		_, err := b.client.Put(t.Context(), b.head, id, check(status.Completed, status.Success), false)
		if f := fault.Of(err); f == nil || f.Class != fault.Transient || f.Reason != fault.ReasonTransition {
			t.Errorf("got %+v, want a Transient fault with reason %s", f, fault.ReasonTransition)
		}
		if b.put(t, id, check(status.Completed, status.Success)); b.states(testProject) != "success" {
			t.Error(b.states(testProject))
		}
	})
	t.Run("nothing of the run is shown", func(t *testing.T) {
		b := newBench(t, forgelab.Options{})
		refuse(b, 1)
		if _, err := b.client.Put(t.Context(), b.head, "", check(status.InProgress, ""), false); !fault.Is(err,
			fault.Transient) {
			t.Errorf("%v, want a Transient fault", err)
		}
	})
}

func TestStatusesKeepTheirPipeline(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	id := b.put(t, "", check(status.InProgress, ""))
	// A pipeline of another ref on the same commit is newer than ours from here on.
	b.SetBranch(testProject, "elsewhere", b.head.SHA, "dev")
	elsewhere := b.head
	elsewhere.Ref = "elsewhere"
	other := check(status.InProgress, "")
	other.Name, other.ExternalID = "Plumbline / other", "other-1"
	if _, err := b.client.Put(t.Context(), elsewhere, "", other, false); err != nil {
		t.Fatal(err)
	}
	b.head.Ref = "" // as if GitLab would take any pipeline of the commit
	if again := b.put(t, "", check(status.Completed, status.Success)); again != id {
		t.Errorf("concluded as %s, want %s", again, id)
	}
	if got := b.StatusesFor(testProject, b.head.SHA); len(got) != 2 || got[0].PipelineID == got[1].PipelineID {
		t.Errorf("%+v", got)
	}
}

func TestTokenWithoutStatusPermissionIsOperatorFault(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	b.Inject(forgelab.Fault{Route: forgelab.RouteStatusCreate, Do: forgelab.InsufficientScope403()})
	_, err := b.client.Put(t.Context(), b.head, "", check(status.Queued, ""), false)
	if !fault.Is(err, fault.Operator) || !strings.Contains(err.Error(), "scope api") ||
		!strings.Contains(err.Error(), "Developer") {
		t.Errorf("%v, want an Operator fault that says what the token needs", err)
	}
	if strings.Contains(err.Error(), b.token.Value) {
		t.Errorf("the error shows the token: %v", err)
	}
}

// E6: GitLab shows a report that arrives after the verdict. The next look-up corrects it.
func TestLateReportIsCorrected(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	id := b.put(t, "", check(status.Completed, status.Success))
	late := makeStatus(check(status.InProgress, ""))
	r, _ := b.client.Reporter.(*repository)
	if _, err := r.set(t.Context(), place{project: testProject}, b.head.SHA, late, 0); err != nil ||
		b.states(testProject) != "success running" {
		t.Fatalf("%v: %s, want the late report to be shown", err, b.states(testProject))
	}
	if b.put(t, id, check(status.Completed, status.Success)); b.states(testProject) != "success success" {
		t.Errorf("the commit shows %s", b.states(testProject))
	}
}
