// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

func running() status.Check {
	return status.Check{
		Key: "run-1", Name: "Plumbline / build", ExternalID: "run-1", State: status.InProgress, Title: "Running",
		Summary: "is running", Text: "a table", DetailsURL: "https://console.example/run-1",
	}
}

func ended(c status.Conclusion) status.Check {
	check := running()
	check.State, check.Conclusion, check.Title = status.Completed, c, "Ended"
	return check
}

// reporting is a commit to report on.
type reporting struct {
	Env
	client provider.Client
	head   git.Head
}

func report(t *testing.T, w Env) reporting {
	t.Helper()
	sha := w.Service.Commit("main", map[string]string{"x": "y"})
	return reporting{Env: w, client: connect(t, w), head: git.Head{SHA: sha, Project: w.Project}}
}

func (r reporting) put(t *testing.T, id string, check status.Check) string {
	t.Helper()
	id, err := r.client.Put(t.Context(), r.head, id, check, false)
	if err != nil || id == "" {
		t.Fatalf("Put: id %q, %v", id, err)
	}
	labels, annotations := r.Provider.Metadata(id)
	for key, value := range labels {
		if refused := validation.IsValidLabelValue(value); refused != nil {
			t.Errorf("no PipelineRun can carry the label %s=%q: %v", key, value, refused)
		}
	}
	if len(annotations) == 0 {
		t.Errorf("nothing of the id %q is on the PipelineRun", id)
	}
	return id
}

// only returns the one check of the commit.
func (r reporting) only(t *testing.T) Check {
	t.Helper()
	checks := r.Service.Checks(r.head.SHA)
	if len(checks) != 1 {
		t.Fatalf("the commit has %d checks, want 1: %+v", len(checks), checks)
	}
	return checks[0]
}

func testReporter(t *testing.T, open func(*testing.T) Env) {
	t.Run("a check is created, updated and completed as one", func(t *testing.T) { testCreateUpdateComplete(t, open(t)) })
	t.Run("a check that nobody else has posted is the same one", func(t *testing.T) { testSole(t, open(t)) })
	t.Run("repeating any step changes nothing", func(t *testing.T) { testRepeat(t, open(t)) })
	t.Run("a completed check is not opened again by a late report", func(t *testing.T) { testLateReport(t, open(t)) })
	t.Run("another run's check of the same name is left alone", func(t *testing.T) { testOtherRun(t, open(t)) })
	t.Run("the newest run of a name is the one that is seen", func(t *testing.T) { testNewestRun(t, open(t)) })
	t.Run("a check that yields replaces no other", func(t *testing.T) { testYields(t, open(t)) })
	t.Run("a check is found behind many others", func(t *testing.T) { testManyChecks(t, open(t)) })
	t.Run("only what is open is closed where nobody knows more", func(t *testing.T) { testOnlyOpen(t, open(t)) })
	t.Run("a check is known by what the version before called it", func(t *testing.T) { testFormer(t, open(t)) })
	t.Run("a check that contradicts itself is never sent", func(t *testing.T) { testContradiction(t, open(t)) })
	for _, how := range []Failure{StoredThen502, StoredThenGone} {
		t.Run("a check that was "+string(how)+" is found again", func(t *testing.T) {
			testLookupBeforeRepeat(t, open(t), how)
		})
	}
}

func testCreateUpdateComplete(t *testing.T, w Env) {
	r := report(t, w)
	id := r.put(t, "", running())
	want := Check{
		ID: id, Name: "Plumbline / build", ExternalID: "run-1", State: "in_progress", Title: "Running",
		Summary: "is running", Text: "a table", DetailsURL: "https://console.example/run-1",
	}
	if w.MaxText == 0 {
		want.Summary, want.Text = "", ""
	}
	if d := cmp.Diff(want, r.only(t), cmpopts.IgnoreFields(Check{}, "Updates")); d != "" {
		t.Error(d)
	}
	if again := r.put(t, id, ended(status.Success)); again != id {
		t.Errorf("completed as %s, created as %s", again, id)
	}
	if got := r.only(t); got.State != "completed" || got.Conclusion != "success" || got.Title != "Ended" {
		t.Errorf("got %+v", got)
	}
}

// testSole: a caller that knows all posts needs no look-up, and gets the same result.
func testSole(t *testing.T, w Env) {
	r := report(t, w)
	id := ""
	for _, check := range []status.Check{running(), ended(status.Failure)} {
		now, err := r.client.Put(t.Context(), r.head, id, check, true)
		if err != nil || now == "" || id != "" && now != id {
			t.Fatalf("id %q after %q, %v", now, id, err)
		}
		id = now
	}
	if got := r.only(t); got.ID != id || got.Conclusion != "failure" {
		t.Errorf("got %+v", got)
	}
}

func testRepeat(t *testing.T, w Env) {
	r := report(t, w)
	for _, check := range []status.Check{running(), ended(status.Failure)} {
		id := r.put(t, "", check)
		for _, known := range []string{"", id, "no id of the service"} {
			if again := r.put(t, known, check); again != id {
				t.Errorf("repeated with id %q: %s, want %s", known, again, id)
			}
		}
	}
	if got := r.only(t); got.Conclusion != "failure" {
		t.Errorf("the check is %+v, want a failure", got)
	}
}

func testLateReport(t *testing.T, w Env) {
	r := report(t, w)
	id := r.put(t, "", ended(status.Success))
	before := r.only(t)
	for _, known := range []string{"", id} {
		if again := r.put(t, known, running()); again != id {
			t.Errorf("late report with id %q: %s, want %s", known, again, id)
		}
	}
	// For some seconds two processes may both assume that they are the leader; one still assumes
	// that every post was its own.
	if _, err := r.client.Put(t.Context(), r.head, id, running(), true); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(before, r.only(t)); d != "" {
		t.Error(d)
	}
}

func testOtherRun(t *testing.T, w Env) {
	r := report(t, w)
	first := r.put(t, "", ended(status.Failure))
	second := running()
	second.Key, second.ExternalID = "run-2", "run-2"
	if id := r.put(t, "", second); id == first {
		t.Error("the check of another run was taken")
	}
	got := r.Service.Checks(r.head.SHA)
	if len(got) != 2 || got[0].Conclusion != "failure" || got[1].State != "in_progress" {
		t.Errorf("the checks are %+v, want a failure and then run-2 in progress", got)
	}
}

// testNewestRun: a run that is started again on the same commit is shown with its own link,
// whatever the earlier run still reports.
func testNewestRun(t *testing.T, w Env) {
	r := report(t, w)
	first := r.put(t, "", running())
	again := running()
	again.Key, again.ExternalID, again.DetailsURL = "run-2", "run-2", "https://console.example/run-2"
	second := r.put(t, "", again)
	r.put(t, first, running())
	r.put(t, first, ended(status.Failure))
	newest := r.Service.Checks(r.head.SHA)
	if got := newest[len(newest)-1]; got.ID != second || got.State != "in_progress" || got.DetailsURL != again.DetailsURL {
		t.Errorf("the older run's report is seen: %+v", newest)
	}
	again.State, again.Conclusion = status.Completed, status.Success
	r.put(t, second, again)
	newest = r.Service.Checks(r.head.SHA)
	if got := newest[len(newest)-1]; got.ID != second || got.Conclusion != "success" || len(newest) != 2 {
		t.Errorf("got %+v", newest)
	}
}

// testYields: a check that a pipeline is not started never hides a result, and a result replaces
// it.
func testYields(t *testing.T, w Env) {
	r := report(t, w)
	yields := ended(status.Skipped)
	yields.ExternalID, yields.Yields, yields.DetailsURL = "run-2", true, ""
	for range 2 { // as after a lost answer
		r.put(t, "", yields)
	}
	if got := r.only(t); got.Conclusion != w.shows(status.Skipped) {
		t.Errorf("%+v, want it skipped", got)
	}
	r.put(t, "", running())
	r.put(t, "", ended(status.Failure))
	for _, sole := range []bool{true, false} {
		yields.ExternalID = "run-3"
		id, err := r.client.Put(t.Context(), r.head, "", yields, sole)
		if err != nil || id != "" {
			t.Errorf("a check of another event: id %q, %v, want none", id, err)
		}
	}
	checks := r.Service.Checks(r.head.SHA)
	if len(checks) != 2 || checks[1].Conclusion != "failure" {
		t.Errorf("%+v, want the failure as the newest", checks)
	}
}

func testManyChecks(t *testing.T, w Env) {
	r := report(t, w)
	id := r.put(t, "", running())
	for range 120 {
		other := running()
		other.ExternalID = "other"
		other.ExternalID += strings.Repeat("x", len(r.Service.Checks(r.head.SHA)))
		r.put(t, "", other)
	}
	if again := r.put(t, "", ended(status.Success)); again != id {
		t.Errorf("got %s, want %s", again, id)
	}
}

func testContradiction(t *testing.T, w Env) {
	r := report(t, w)
	wrong := running()
	wrong.Conclusion = status.Success
	open := ended("")
	neutral := ended("neutral")
	for _, check := range []status.Check{wrong, open, neutral} {
		if _, err := r.client.Put(t.Context(), r.head, "", check, false); !fault.Is(err, fault.Operator) {
			t.Errorf("%+v: %v, want an Operator fault", check, err)
		}
	}
	if got := r.Service.Checks(r.head.SHA); len(got) != 0 {
		t.Errorf("sent: %+v", got)
	}
}

func testLookupBeforeRepeat(t *testing.T, w Env, how Failure) {
	r := report(t, w)
	r.Service.Fail(CreateCheck, how, 1)
	_, err := r.client.Put(t.Context(), r.head, "", running(), false)
	if f := fault.Of(err); f == nil || f.Class != fault.Transient || !f.Unknown {
		t.Fatalf("got %+v, want a Transient fault whose outcome is unknown", f)
	}
	stored := r.only(t)
	if id := r.put(t, "", ended(status.Success)); id != stored.ID {
		t.Errorf("got %s, want %s", id, stored.ID)
	}
	if got := r.only(t); got.Conclusion != "success" {
		t.Errorf("got %+v", got)
	}
}
