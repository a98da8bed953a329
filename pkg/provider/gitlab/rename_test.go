// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/status"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// The application has another name when a run finishes than when it started: its commit shows one
// status, which is finished.
func TestStatusKeepsItsName(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	event := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: "push-1"}, Status: v1alpha1.GitEventStatus{
		Disposition: v1alpha1.DispositionRuns, Plan: &v1alpha1.Plan{},
		Runs: []v1alpha1.Run{{Pipeline: "build", Namespace: "ci", Name: "build-1", UID: "1"}},
	}}
	show := func(application string) string {
		checks := status.Desired(status.Input{
			Application: application, Event: event, Runs: []status.RunState{{Run: event.Status.Runs[0]}},
		})
		id := b.put(t, "", checks[0])
		event.Status.Checks = []v1alpha1.Check{{Key: checks[0].Key, Name: checks[0].Name, ID: id}}
		return b.states(testProject)
	}
	if got := show("Old CI"); got != "running" {
		t.Fatalf("it shows %s", got)
	}
	event.Status.Runs[0].Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeSucceeded}
	if got := show("New CI"); got != "success" {
		t.Errorf("it shows %s, want one status that has ended", got)
	}
	if got := b.StatusesFor(testProject, b.head.SHA)[0].Name; got != "Old CI / build" {
		t.Errorf("the status is called %q", got)
	}
}

// A path that belongs to another project now shows nothing, although that has the commit and the
// token covers it.
func TestPutRefusesAnotherProjectOfSamePath(t *testing.T) {
	f, w := openFake(t, forgelab.Options{})
	const path = "acme/team/taken"
	taken := f.CreateProject(path, forgelab.ProjectOptions{Unprotected: true})
	w.Credentials.Token = f.CreateToken(forgelab.NewToken{Project: path}).Value
	w.Project.Name, w.Project.URL = "taken", taken.WebURL // and the id is that of the project that the event came from
	client, err := w.Provider.Connect(t.Context(), w.BaseURL, w.Project, w.Credentials)
	if err != nil {
		t.Fatal(err)
	}
	sha := f.GitLab.Commit(path, "main", forgelab.Change{Message: "the same", Files: map[string]string{"x": "y"}})
	_, err = client.Put(t.Context(), git.Head{SHA: sha, Project: w.Project, Ref: "refs/heads/main"}, "",
		check(status.Completed, status.Success), false)
	if shown := f.StatusesFor(path, sha); err == nil || len(shown) != 0 {
		t.Errorf("error %v, and it shows %v", err, shown)
	}
}
