// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"slices"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/pac"
	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// A check gets the true end of its run, and the run can be deleted afterwards.
func TestFinishConcludesWithTheTrueState(t *testing.T) {
	l := newLeft(t)
	deleted := l.run("deleted", "started")
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	untouched := ended(l.run("reported", "completed"), "False", "Failed")
	unnumbered := ended(l.run("unnumbered", ""), "True", "Succeeded")
	delete(unnumbered.Annotations, pipelinesascode.CheckRunID)
	delete(unnumbered.Annotations, pipelinesascode.State)
	ours := ended(l.run("ours", "started"), "True", "Succeeded")
	ours.Labels[plumbline.EventLabel] = "gh-1"
	l.create(
		ended(l.run("good", "started"), "True", "Succeeded"),
		ended(l.run("bad", "started"), "False", "Failed"),
		ended(
			l.run("stopped", "queued"),
			"False",
			"Cancelled",
		),
		ended(l.run("unreported", "failed"), "False", "PipelineRunTimeout"),
		deleted,
		untouched,
		unnumbered,
		ours,
	)
	if err := l.finish(); err != nil {
		t.Fatal(err, l.out.String())
	}
	for run, want := range map[string]string{
		"good": "success", "bad": "failure", "stopped": "cancelled", "unreported": "failure", "deleted": "cancelled",
		"unnumbered": "success", "reported": "", "ours": "",
	} {
		if got := l.conclusionOf(run); got != want {
			t.Errorf("the check of %s is %q, want %q", run, got, want)
		}
		object := l.get(run)
		if has := slices.Contains(object.GetFinalizers(), finalizer); has ||
			!slices.Contains(object.GetFinalizers(), "chains.tekton.dev/pipelinerun") {
			t.Errorf("%s has the finalizers %q", run, object.GetFinalizers())
		}
		if state := object.GetAnnotations()[pipelinesascode.State]; (state == "completed") != (run != "ours") {
			t.Errorf("%s is %q", run, state)
		}
	}
	if data := l.data(); data["pipelines-as-code-url"] != "" {
		t.Errorf("the ConfigMap is %v", data)
	}
	if err := l.kube.Tracker().Delete(admissionv1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations"), "",
		pacWebhookConfig); err == nil {
		t.Error("the webhook configuration is still there")
	}
	writes := len(l.forge.WritesForCheck("acme/app", l.sha, check))
	if err := l.finish(); err != nil || len(l.forge.WritesForCheck("acme/app", l.sha, check)) != writes {
		t.Errorf("%v: the second call wrote again", err)
	}
}

func TestFinishConcludesAStatusOfGitLab(t *testing.T) {
	l := newLeft(t)
	l.create(ended(l.labRun("good"), "True", "Succeeded"))
	if err := l.finish(); err != nil {
		t.Fatal(err, l.out.String())
	}
	all := l.lab.StatusesFor("acme/app", l.labSHA)
	if len(all) != 1 || all[0].State != "success" {
		t.Errorf("the statuses are %+v", all)
	}
}

func TestFinishConcludesAStatusOfGitHub(t *testing.T) {
	l := newLeft(t)
	l.create(ended(l.hookRun("good"), "True", "Succeeded"))
	if err := l.finish(); err != nil {
		t.Fatal(err, l.out.String())
	}
	if now := l.forge.StatusesFor("acme/hooked", l.hookSHA); len(now) != 2 || now[1].State != "success" {
		t.Errorf("the statuses are %+v", now)
	}
}

// Plumbline has started the commit again: its newer status is not replaced by an older end.
func TestFinishLeavesANewerStatusOfGitHub(t *testing.T) {
	l := newLeft(t)
	l.create(ended(l.hookRun("old"), "True", "Succeeded"))
	l.hookStatus("Started (new)")
	if err := l.finish(); err != nil {
		t.Fatal(err, l.out.String())
	}
	if now := l.forge.StatusesFor("acme/hooked", l.hookSHA); len(now) != 2 {
		t.Errorf("the statuses are %+v", now)
	}
}

// Without a GitHub App a pipeline has one status on a commit, however often it has run.
func TestFinishConcludesAStatusWithTheNewestRun(t *testing.T) {
	l := newLeft(t)
	older := []*pipelinev1.PipelineRun{l.labRun("lab-1"), l.hookRun("hook-1")}
	for n, run := range older {
		run.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC))
		newer := run.DeepCopy()
		newer.Name = []string{"lab-2", "hook-2"}[n]
		newer.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 2, 0, 0, 0, time.UTC))
		l.create(ended(run, "True", "Succeeded"), ended(newer, "False", "Failed"))
	}
	if err := l.finish(); err != nil {
		t.Fatal(err, l.out.String())
	}
	lab, _ := l.lab.Current("acme/app", l.labSHA, check)
	hooked := l.forge.StatusesFor("acme/hooked", l.hookSHA)
	if lab.State != "failed" || hooked[len(hooked)-1].State != "failure" {
		t.Errorf("the statuses are %+v, %+v", lab, hooked)
	}
}

// Plumbline has started the commit again: its newer status is not replaced by an older end.
func TestFinishLeavesANewerStatusOfGitLab(t *testing.T) {
	l := newLeft(t)
	l.create(ended(l.labRun("old"), "True", "Succeeded"))
	l.status("canceled", "CI has Started")
	l.status("running", "Started (new)")
	if err := l.finish(); err != nil {
		t.Fatal(err, l.out.String())
	}
	if now, _ := l.lab.Current("acme/app", l.labSHA, check); now.State != "running" {
		t.Errorf("the status is %+v", now)
	}
}

// A process that ends at any point loses no check and no run: the next call continues.
func TestFinishContinues(t *testing.T) {
	key := forge.New(forge.Options{}).CreateApp(7, "pac", "", "").PrivateKeyPEM
	for n := 1; ; n++ {
		l := newLeft(t, key)
		l.create(ended(l.run("good", "started"), "True", "Succeeded"), ended(l.run("bad", "failed"), "False", "Failed"),
			ended(l.labRun("lab"), "True", "Succeeded"))
		l.failAt(n)
		first := l.finish()
		l.failAt(0)
		for _, run := range []string{"good", "bad"} {
			if !slices.Contains(l.get(run).GetFinalizers(), finalizer) && l.conclusionOf(run) == "" {
				t.Errorf("after call %d failed: %s can be deleted, and its check is open", n, run)
			}
		}
		if err := l.finish(); err != nil {
			t.Fatalf("after call %d failed: %v", n, err)
		}
		lab, _ := l.lab.Current("acme/app", l.labSHA, check)
		if l.conclusionOf("good") != "success" || l.conclusionOf("bad") != "failure" || lab.State != "success" {
			t.Errorf(
				"after call %d failed: the checks are %q, %q, %q",
				n,
				l.conclusionOf("good"),
				l.conclusionOf("bad"),
				lab.State,
			)
		}
		for _, run := range []string{"good", "bad", "lab"} {
			if slices.Contains(l.get(run).GetFinalizers(), finalizer) {
				t.Errorf("after call %d failed: %s cannot be deleted", n, run)
			}
		}
		if data := l.data(); data["pipelines-as-code-url"] != "" || data["serve-namespaces"] != "plumbline, team-*" {
			t.Errorf("after call %d failed: %v", n, data)
		}
		if first == nil {
			if n < 20 {
				t.Fatalf("only %d calls were made", n)
			}
			return
		}
	}
}

// Runs keep their finalizers, so that a later call finds them.
func TestFinishKeepsWhatItCannotConclude(t *testing.T) {
	l := newLeft(t)
	gone := ended(l.run("gone", "started"), "True", "Succeeded")
	gone.Annotations[pipelinesascode.Repository] = "deleted"
	elsewhere := ended(l.run("elsewhere", "started"), "True", "Succeeded")
	elsewhere.Annotations[pipelinesascode.GitProvider] = "gitea"
	foreign := ended(l.run("foreign", "started"), "True", "Succeeded")
	foreign.Annotations[pipelinesascode.RepoURL] = "https://github.com/another/app"
	l.create(gone, elsewhere, foreign, ended(l.run("good", "started"), "True", "Succeeded"))
	err := l.finish()
	if err == nil || !strings.Contains(err.Error(), "3 checks could not be concluded") {
		t.Fatal(err)
	}
	l.says("Repository team-a/deleted is gone", "at gitea, which Plumbline does not serve", "Repository team-a/app is gone or has another URL")
	for run, kept := range map[string]bool{"gone": true, "elsewhere": true, "foreign": true, "good": false} {
		if slices.Contains(l.get(run).GetFinalizers(), finalizer) != kept {
			t.Errorf("%s has the finalizers %q", run, l.get(run).GetFinalizers())
		}
	}
	if err := l.finish(func(f *Finish) { f.LeaveChecks = true }); err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{"gone", "elsewhere", "foreign"} {
		if slices.Contains(l.get(run).GetFinalizers(), finalizer) || l.conclusionOf(run) != "" {
			t.Errorf("%s has the finalizers %q, and its check is %q", run, l.get(run).GetFinalizers(), l.conclusionOf(run))
		}
	}
}

func TestFinishRefuses(t *testing.T) {
	runs := func(e *left) {
		for _, name := range []string{pac.ControllerName, pac.WatcherName} {
			_ = e.kube.Tracker().Update(deployments(), deployment(pacNS, name), pacNS)
		}
	}
	for name, test := range map[string]struct {
		change func(l *left)
		want   string
	}{
		"namespaces that have not moved": {func(l *left) {
			l.set("pipelines-as-code-url", pacURL, "serve-namespaces", system)
		}, "these namespaces: team-a."},
		"Repositories without a claim": {func(l *left) {
			_ = l.own.Tracker().Delete(claimKind(), system, claim(repository(team, "app", l.web)).Name)
		}, "the URLs of 1 Repositories are not claimed by Plumbline yet"},
		"an additional controller that runs": {func(l *left) {
			second := deployment(pacNS, "second-controller")
			second.Spec.Template.Spec.Containers = []corev1.Container{
				{Env: []corev1.EnvVar{{Name: "PAC_CONTROLLER_CONFIGMAP", Value: "second"}}},
			}
			l.put(second)
		}, "scale deployment second-controller --replicas=0"},
		"unfinished runs": {func(l *left) {
			l.create(l.run("running", "started"))
		}, "add --wait to wait for them, or --cancel"},
		"a running PaC": {runs, "kubectl -n openshift-pipelines scale deployment " + pac.ControllerName + " " + pac.WatcherName +
			" --replicas=0"},
		"a PaC of the operator": {func(l *left) {
			runs(l)
			owned := deployment(pacNS, pac.WatcherName)
			owned.OwnerReferences = []metav1.OwnerReference{{Kind: "TektonInstallerSet"}}
			_ = l.kube.Tracker().Update(deployments(), owned, pacNS)
		}, "plumb migrate operator"},
		"a migration that has not started": {func(l *left) {
			runs(l)
			l.set()
		}, "run plumb migrate start first"},
		"missing rights": {func(l *left) {
			l.allow("patch pipelineruns", "get secrets")
			l.create(ended(l.run("good", "started"), "True", "Succeeded"))
		}, "get secrets in namespace team-a\n  patch pipelineruns.tekton.dev in all namespaces\n"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLeft(t)
			test.change(l)
			l.kube.ClearActions()
			l.refused(l.finish(), test.want)
			for _, c := range l.forge.ChecksFor("acme/app", l.sha) {
				if c.Conclusion != "" {
					t.Errorf("the check is %+v", c)
				}
			}
		})
	}
}
