// SPDX-License-Identifier: Apache-2.0

package orphans_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

const (
	system = "plumbline"
	tenant = "team"
	url    = "https://git.example/acme/app"
	sha    = "0123456789012345678901234567890123456789"
)

// The event of a run was deleted. Its check is closed with what is known and without a verdict, and
// the run is labelled.
func TestOrphanedCheckIsClosed(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.start()
	if asked, err := w.close(); !asked || err != nil {
		t.Fatal(asked, err)
	}
	if len(w.puts) != 1 || len(w.patches) != 1 {
		t.Fatalf("%d reports and %d patches, want one each", len(w.puts), len(w.patches))
	}
	got := w.puts[0]
	if got.project.ID != 5 || got.project.Owner != "acme" || got.project.Name != "app" || got.head.SHA != sha ||
		got.id != "7" {
		t.Errorf("reported at %+v", got)
	}
	if c := got.check; c.Conclusion != status.Cancelled || !c.OnlyOpen || c.ExternalID != "build-1" ||
		!strings.HasSuffix(c.Name, " / build") || !strings.Contains(c.Text, "push-1 was deleted") {
		t.Errorf("the report is %+v", c)
	}
	if !strings.Contains(w.patches[0], `"pipelinesascode.tekton.dev/state":"completed"`) {
		t.Errorf("patched %s", w.patches[0])
	}
}

// A PipelineRun that was created next to Pipelines-as-Code never gets a state.
func TestOrphanWithoutAStateGetsNone(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	delete(w.run.Annotations, pipelinesascode.State)
	w.start()
	if asked, err := w.close(); !asked || err != nil || len(w.patches) != 1 {
		t.Fatal(asked, err, w.patches)
	}
	if strings.Contains(w.patches[0], "/state") || !strings.Contains(w.patches[0], `"plumbline.dev/reported":"true"`) {
		t.Errorf("patched %s", w.patches[0])
	}
}

// The event of a third attempt was deleted. The check is that of the first, and names all of them.
func TestOrphanedCheckOfALaterAttemptIsClosed(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	first := resources.RunName("push-1", ".tekton/build.yaml", 0, "build")
	second, third := resources.AttemptName(first, 2), resources.AttemptName(first, 3)
	w.run.Name = third
	w.run.Labels[plumbline.InstallationLabel], w.run.Labels[plumbline.AttemptLabel] = system, "3"
	w.run.Annotations[plumbline.RunKeyAnnotation] = system + "/push-1/.tekton/build.yaml#0"
	w.start()
	if asked, err := w.close(); !asked || err != nil || len(w.puts) != 1 {
		t.Fatal(asked, err, w.puts)
	}
	if c := w.puts[0].check; c.ExternalID != first || !strings.Contains(c.Text, "Attempt 2 of 3, PipelineRun "+second) ||
		!strings.Contains(c.Text, "Attempt 3 of 3, PipelineRun "+third) {
		t.Errorf("the report is of %s: %s", c.ExternalID, c.Text)
	}
}

// Labels and annotations of a run are not trusted: nothing is reported where the API server does
// not confirm them.
func TestUnconfirmedRunIsNotReported(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *env){
		"its event has settled": func(w *env) { w.objects = append(w.objects, givenUp()) },
		"its event is there": func(w *env) {
			w.objects = append(w.objects, &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "push-1"}})
		},
		"it is young":            func(w *env) { w.run.CreationTimestamp = metav1.NewTime(w.clock.Now()) },
		"its label is no name":   func(w *env) { w.run.Labels[plumbline.EventLabel] = "No_Name" },
		"its Repository is gone": func(w *env) { w.objects = []runtime.Object{claim()} },
		"its Repository has another URL": func(w *env) {
			w.run.Annotations[pipelinesascode.RepoURL] = "https://git.example/other/app"
		},
		"the URL is not claimed": func(w *env) { w.objects = []runtime.Object{repository()} },
		"another one has claimed it": func(w *env) {
			c := claim()
			c.Spec.Repository.Namespace = "others"
			w.objects = []runtime.Object{repository(), c}
		},
		"the URL is not bound": func(w *env) {
			c := claim()
			c.Status.Bound = nil
			w.objects = []runtime.Object{repository(), c}
		},
		"the URL was bound for a Repository before": func(w *env) {
			c := claim()
			c.Status.Bound.RepositoryUID = "before"
			w.objects = []runtime.Object{repository(), c}
		},
		"no such Git service is served": func(w *env) { w.run.Annotations[pipelinesascode.GitProvider] = "none" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t)
			change(w)
			w.start()
			if asked, err := w.close(); asked || err != nil || len(w.puts)+len(w.patches) != 0 {
				t.Errorf("asked %v, %v; reports %v, patches %v", asked, err, w.puts, w.patches)
			}
		})
	}
}

// The annotations of a run are not trusted, and a user of the namespace may have bound its URL with
// a forged delivery. With http, the URL would be a second one of another namespace's repository.
func TestAppReportsOnlyAtItsGitHub(t *testing.T) {
	t.Parallel()
	for github, reports := range map[string]int{
		"https://git.example": 1, "http://git.example": 0, "https://github.com": 0,
	} {
		w := newEnv(t)
		w.github = github
		w.run.Annotations[pipelinesascode.InstallationID] = "7"
		w.start()
		if _, err := w.close(); err != nil || len(w.puts) != reports {
			t.Errorf("%s: %d reports, %v", github, len(w.puts), err)
		}
	}
}
