// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// referring returns a pipeline for pushes to main with one task, and the reference to it.
func referring(name, task, reference string) git.File {
	return git.File{Path: ".tekton/" + name + ".yaml", Data: []byte(`apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: ` + name + `
  annotations:
    pipelinesascode.tekton.dev/on-event: "[push]"
    pipelinesascode.tekton.dev/on-target-branch: "[main]"
    pipelinesascode.tekton.dev/task: "` + reference + `"
spec:
  pipelineSpec:
    tasks: [{name: t, taskRef: {name: ` + task + `}}]
`)}
}

// conclusions returns the conclusions of the checks, by pipeline.
func (w *env) conclusions() map[string]status.Conclusion {
	all := map[string]status.Conclusion{}
	for _, check := range w.git.checks {
		all[strings.TrimPrefix(check.Name, "Pipelines as Code CI / ")] = check.Conclusion
	}
	return all
}

func (w *env) useHub(h *hub) {
	w.settings = map[string]string{"hub-url": h.URL, "remote-allowed-hosts": "127.0.0.1"}
}

// S1, S5: a pipeline that is planned later, because its reference was missing, is refused if too
// much was planned before. Otherwise an author whose server answers for one pipeline after the
// other would fill etcd, and the memory of processes that read the plan.
func TestRetriesShareTheLimitsOfOnePlan(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	w := newEnv(t, helloFile("a-plain"), referring("b-remote", "lint", "lint"))
	w.useHub(h)
	h.fail = func(string) int { return 503 }
	_, _ = w.reconcile()
	e := w.event()
	e.Status.Plan.Blobs = append(e.Status.Plan.Blobs,
		v1alpha1.BlobReference{Name: "push-1-plan-before", Chunks: 1, Size: plan.MaxBytes})
	w.must(w.own.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), e, system))
	h.mu.Lock()
	h.fail = nil
	h.mu.Unlock()
	w.kill()
	w.settle(corev1.ConditionTrue)
	want := map[string]status.Conclusion{"a-plain": status.Success, "b-remote": status.Failure}
	if diff := cmp.Diff(want, w.conclusions()); diff != "" || w.count("create pipelineruns") != 1 {
		t.Errorf("%d creates, want one: %s", w.count("create pipelineruns"), diff)
	}
}

// B4, B5: an outage of a reference is waited for, with a check that says so; the other pipelines
// run once.
func TestReferenceThatCannotBeFetchedIsWaitedFor(t *testing.T) {
	t.Parallel()
	for code, class := range map[int]string{503: "Transient", 500: "Transient", 429: "Throttled", 408: "Transient"} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			w := newEnv(t, helloFile("a-plain"), referring("b-remote", "lint", "lint"), referring("c-also", "lint", "lint"))
			w.useHub(h)
			h.fail = func(string) int { return code }
			for range 3 {
				if _, err := w.reconcile(); err == nil {
					t.Error("the plan must be tried again")
				}
			}
			e := w.event()
			if diff := cmp.Diff(map[string]status.Conclusion{"a-plain": "", "b-remote": "", "c-also": ""},
				w.conclusions()); diff != "" || len(w.runs()) != 1 {
				t.Errorf("%d runs, want that of a-plain: %s", len(w.runs()), diff)
			}
			for _, check := range w.git.checks {
				waits := check.State == status.Queued && strings.HasPrefix(check.Title,
					"Waiting for what the pipeline refers to") && strings.Contains(check.Text, "lint ("+h.URL)
				if waits == strings.HasSuffix(check.Name, "a-plain") {
					t.Errorf("%s: %s, %s, %s", check.Name, check.State, check.Title, check.Text)
				}
			}
			if at := slices.IndexFunc(e.Status.Waits,
				func(w v1alpha1.Wait) bool { return w.Step == v1alpha1.StepPlan }); at < 0 || e.Status.Waits[at].Class != class {
				t.Errorf("waits %+v, want one of the plan of class %s", e.Status.Waits, class)
			}
			h.mu.Lock()
			h.fail = nil
			h.mu.Unlock()
			w.settle(corev1.ConditionTrue)
			want := map[string]status.Conclusion{"a-plain": status.Success, "b-remote": status.Success, "c-also": status.Success}
			if diff := cmp.Diff(want, w.conclusions()); diff != "" || w.count("create pipelineruns") != 3 {
				t.Errorf("%d creates, want three: %s", w.count("create pipelineruns"), diff)
			}
		})
	}
}

// B5: a mistake that only the author can fix fails only that pipeline's check.
func TestReferenceThatIsWrongFailsItsPipelineAlone(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	tests := map[string]struct{ reference, says string }{
		"not on the hub": {
			"missing", "missing (" + h.URL + "/api/v1/packages/tekton-task/tekton-catalog-tasks/missing): ",
		},
		"no such page":            {h.URL + "/x/missing.yaml?token=s3cret", h.URL + "/x/missing.yaml?…: "},
		"no such file":            {"tasks/none.yaml", "tasks/none.yaml: tasks/none.yaml does not exist at commit " + sha},
		"no such hub":             {"nobody://lint", `no hub is called "nobody"`},
		"a private address":       {"http://10.1.2.3/lint.yaml", "10.1.2.3 is not fetched from: it is not a public address"},
		"a name in the cluster":   {"http://x.default.svc/lint.yaml", "a name inside the cluster"},
		"the metadata service":    {"http://169.254.169.254/lint.yaml", "not a public address"},
		"not the Task of it":      {"other", "refers to Task lint, which neither"},
		"a password is not shown": {"http://me:s3cret@10.1.2.3/x.yaml", "http://10.1.2.3/x.yaml: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, referring("bad", "lint", test.reference), referring("good", "lint", "lint"), helloFile("plain"))
			w.useHub(h)
			w.settle(corev1.ConditionTrue)
			want := map[string]status.Conclusion{"bad": status.Failure, "good": status.Success, "plain": status.Success}
			if diff := cmp.Diff(want, w.conclusions()); diff != "" {
				t.Error(diff)
			}
			at := slices.IndexFunc(w.git.writes, func(c status.Check) bool { return c.Conclusion == status.Failure })
			said := fmt.Sprintf("%+v", w.git.writes[max(at, 0)])
			if !strings.Contains(said, test.says) || strings.Contains(said, "s3cret") {
				t.Errorf("the check says %s, want %s", said, test.says)
			}
		})
	}
}

// 3.8: definitions and what they refer to in the repository are read at one commit of the target
// repository.
func TestProvenanceCoversTheWholeClosure(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{"source": sha, "": sha, "default_branch": defaultSHA} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, referring("run", "own", "tasks/own.yaml"))
			w.git.tree = map[string]string{"tasks/own.yaml": taskText("own")}
			w.repository = func(r *pacv1alpha1.Repository) {
				r.Spec.Settings = &pacv1alpha1.Settings{PipelineRunProvenance: setting}
			}
			_, _ = w.reconcile()
			if diff := cmp.Diff([]string{want + " .tekton", want + " tasks/own.yaml"}, w.git.read); diff != "" {
				t.Error(diff)
			}
			plan := w.event().Status.Plan
			if plan == nil || plan.DefinitionSHA != want || plan.HeadSHA != sha || len(w.runs()) != 1 {
				t.Errorf("plan %+v, %d runs", plan, len(w.runs()))
			}
		})
	}
}

func TestDefaultBranchThatCannotBeReadIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.repository = func(r *pacv1alpha1.Repository) {
		r.Spec.Settings = &pacv1alpha1.Settings{PipelineRunProvenance: "default_branch"}
	}
	w.git.err = fault.Transientf("GitServiceUnavailable", "502")
	if _, err := w.reconcile(); err == nil || w.event().Status.Plan != nil || len(w.git.writes) != 0 {
		t.Errorf("error %v, status %+v: want a wait", err, w.event().Status)
	}
}

func TestReferencesAreNotFollowedWhenSwitchedOff(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	shared := git.File{Path: ".tekton/shared.yaml", Data: []byte(taskText("shared"))}
	w := newEnv(t, referring("a-cluster", "lint", "lint"), referring("b-local", "shared", "lint"), shared)
	w.useHub(h)
	w.settings["remote-tasks"] = "false"
	_, _ = w.reconcile()
	runs := w.runs()
	if len(runs) != 2 || len(h.counts()) != 0 {
		t.Fatalf("%d runs, asked for %v", len(runs), h.counts())
	}
	for _, run := range runs {
		task := run.Spec.PipelineSpec.Tasks[0]
		if isLocal := strings.HasPrefix(run.Name, "b-local"); isLocal == (task.TaskSpec == nil) ||
			isLocal == (task.TaskRef != nil) {
			t.Errorf("%s: %+v", run.Name, task)
		}
	}
}

// 4.3: an address of the Git service itself is read with the repository's credentials.
func TestAddressOfTheGitServiceIsReadWithCredentials(t *testing.T) {
	t.Parallel()
	w := newEnv(t, referring("run", "own", "https://git.example/acme/other/blob/main/own.yaml"))
	w.git.tree = map[string]string{"acme/other/blob/main/own.yaml": taskText("own")}
	_, _ = w.reconcile()
	if len(w.runs()) != 1 || !slices.Contains(w.git.read, "https://git.example/acme/other/blob/main/own.yaml") {
		t.Errorf("%d runs, read %v, %+v", len(w.runs()), w.git.read, w.event().Status)
	}
}

// I-1: the created runs are the planned ones. Between the first and the second creation the hub's
// answer, the ConfigMap, the Repository and the branch change, and the second is refused once, or
// the process is killed. The runs are those of an undisturbed event.
func TestCreatedRunIsThePlannedOne(t *testing.T) {
	t.Parallel()
	planned := func(h *hub) *env {
		w := newEnv(t, referring("a", "lint", "lint"), referring("b", "lint", "lint"), parametrized("c"))
		w.useHub(h)
		w.setPayload(`{"a": "b"}`)
		w.settings["tekton-dashboard-url"] = "https://dashboard.example"
		w.repository = func(r *pacv1alpha1.Repository) {
			r.Spec.Params = &[]pacv1alpha1.Params{{Name: "stage", Value: "planned"}}
		}
		return w
	}
	made := func(w *env) (all []any) {
		for _, run := range w.runs() {
			delete(run.Annotations, pipelinesascode.CheckRunID)
			delete(run.Labels, pipelinesascode.CheckRunID)
			all = append(all, run.Labels, run.Annotations, run.Spec)
		}
		return all
	}
	undisturbed := planned(newHub(t))
	undisturbed.settle(corev1.ConditionTrue)
	for name, fails := range map[string]outcome{"killed": {kill: true}, "refused": {err: errRefused}} {
		h := newHub(t)
		w, created := planned(h), 0
		w.hook = func(_ int, call string) outcome {
			if call == "create pipelineruns" {
				created++
			}
			if call == "create pipelineruns" && created > 1 {
				return fails
			}
			return outcome{}
		}
		_, _ = w.reconcile()
		if len(w.runs()) != 1 {
			t.Fatalf("%s: %d runs before the change, want one", name, len(w.runs()))
		}
		w.mu.Lock()
		w.hook = nil
		w.mu.Unlock()
		h.fail = func(string) int { return http.StatusNotFound }
		for key, value := range map[string]string{"hub-url": h.URL + "/gone", "remote-tasks": "false",
			"tekton-dashboard-url": "https://elsewhere.example", "secret-auto-create": "false"} {
			w.settings[key] = value
		}
		w.repository = func(r *pacv1alpha1.Repository) {
			r.Spec.Settings = &pacv1alpha1.Settings{PipelineRunProvenance: "default_branch"}
			r.Spec.Params = &[]pacv1alpha1.Params{{Name: "stage", Value: "as it is now"}}
		}
		w.git.files = []git.File{parametrized("a")}
		w.settle(corev1.ConditionTrue)
		if diff := cmp.Diff(made(undisturbed), made(w)); diff != "" || len(w.runs()) != 3 || len(h.counts()) != 1 {
			t.Errorf("%s: %d runs (-undisturbed +disturbed):\n%s", name, len(w.runs()), diff)
		}
	}
}
