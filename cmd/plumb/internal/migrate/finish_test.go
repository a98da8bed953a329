// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

const check = "Acme CI / build"

// golden returns a PipelineRun as PaC writes it.
func golden(t *testing.T, name string, values map[string]string) *pipelinev1.PipelineRun {
	t.Helper()
	text, err := os.ReadFile("testdata/pipelinerun.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pairs := []string{"NAMESPACE", team, "NAME", name, "REPOSITORY", "app"}
	for key, value := range values {
		pairs = append(pairs, key, value)
	}
	run := &pipelinev1.PipelineRun{}
	if err := yaml.Unmarshal([]byte(strings.NewReplacer(pairs...).Replace(string(text))), run); err != nil {
		t.Fatal(err)
	}
	run.UID = "uid-of-a-run"
	return run
}

const team = "team-a"

// ended gives a run a terminal condition.
func ended(run *pipelinev1.PipelineRun, status, reason string) *pipelinev1.PipelineRun {
	run.Status.Conditions = append(run.Status.Conditions, condition(status, reason))
	return run
}

// left is a cluster that PaC has left, and a GitHub and a GitLab with checks that it has left open.
type left struct {
	*env
	forge *forge.GitHub
	lab   *gitlab.GitLab
	sha   string
	web   string
	inst  int64

	labURL, labSHA, labToken string
}

// newLeft takes the key of the GitHub App, which is generated if there is none.
func newLeft(t *testing.T, key ...string) *left {
	t.Helper()
	l := &left{forge: forge.New(forge.Options{}), lab: gitlab.New(gitlab.Options{})}
	for _, start := range []func() error{l.forge.Start, l.lab.Start} {
		if err := start(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _, _ = l.forge.Close(), l.lab.Close() })
	app := l.forge.CreateApp(7, "pac", strings.Join(key, ""), "webhook-secret")
	l.web = l.forge.CreateRepo("acme", "app", forge.RepoOptions{}).HTMLURL
	l.inst = l.forge.Install(app.ID, "acme")
	l.sha = l.forge.Commit("acme/app", "main", forge.Change{Files: map[string]string{"a": "b"}, Message: "x"})
	project := l.lab.CreateProject("acme/app", gitlab.ProjectOptions{})
	l.labURL = project.WebURL
	l.labSHA = l.lab.Commit("acme/app", "main", gitlab.Change{Files: map[string]string{"a": "b"}, Message: "x"})

	owner := repository(team, "app", l.web)
	lab := repository(team, "lab", l.labURL)
	lab.Spec.GitProvider = &pacv1alpha1.GitProvider{Type: "gitlab", Secret: &pacv1alpha1.Secret{Name: "lab"}}
	l.env = newEnv(t, owner, lab, claim(owner), claim(lab))
	l.withRuns()
	l.set("pipelines-as-code-url", pacURL, "serve-namespaces", "plumbline, team-*", "github-url", l.forge.URL(),
		"git-allowed-hosts", "127.0.0.1")
	l.put(pacConfig("application-name", "Acme CI"))
	theirs := secret(pacNS, "pipelines-as-code-secret")
	theirs.Data = map[string][]byte{
		"github-application-id": []byte(fmt.Sprint(app.ID)), "github-private-key": []byte(app.PrivateKeyPEM),
	}
	token := secret(team, "lab")
	l.labToken = l.lab.CreateToken(gitlab.NewToken{Project: "acme/app", Level: gitlab.Maintainer}).Value
	token.Data["provider.token"] = []byte(l.labToken)
	l.put(theirs, token, &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: leftWebhook}})
	for _, name := range []string{pacController, pacWatcher, pacWebhook} {
		stopped := deployment(pacNS, name)
		stopped.Spec.Replicas, stopped.Status.Replicas = ptr.To[int32](0), 0
		stopped.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
		if err := l.kube.Tracker().Update(deployments(), stopped, pacNS); err != nil {
			t.Fatal(err)
		}
	}
	l.kube.ClearActions()
	return l
}

func claim(of *pacv1alpha1.Repository) *v1alpha1.RepositoryClaim {
	canonical, err := v1alpha1.CanonicalURL(of.Spec.URL)
	if err != nil {
		panic(err)
	}
	return &v1alpha1.RepositoryClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: v1alpha1.ClaimName(canonical)},
		Spec: v1alpha1.RepositoryClaimSpec{
			URL: canonical, Repository: v1alpha1.ClaimOwner{Namespace: of.Namespace, Name: of.Name, UID: of.UID},
		},
	}
}

// pending creates PaC's open check of a run at GitHub.
func (l *left) pending(run string) (id string) {
	l.Helper()
	body, _ := json.Marshal(map[string]any{
		"name": check, "head_sha": l.sha, "status": "in_progress", "external_id": run,
		"output": map[string]string{"title": "CI has Started", "summary": "Acme CI/build is running."},
	})
	return l.post(l.forge.APIURL()+"repos/acme/app/check-runs", "Authorization", "Bearer "+l.forge.Mint(l.inst), body)
}

// run is a PipelineRun of PaC in the state, with an open check at GitHub.
func (l *left) run(name, state string) *pipelinev1.PipelineRun {
	l.Helper()
	run := golden(l.T, name, map[string]string{"URL": l.web, "SHA": l.sha, "STATE": state})
	id := l.pending(name)
	run.Annotations[pipelinesascode.InstallationID] = fmt.Sprint(l.inst)
	run.Annotations[pipelinesascode.CheckRunID], run.Labels[pipelinesascode.CheckRunID] = id, id
	return run
}

// labRun is one at GitLab, whose status PaC has set without a ref.
func (l *left) labRun(name string) *pipelinev1.PipelineRun {
	l.Helper()
	run := golden(l.T, name, map[string]string{"URL": l.labURL, "SHA": l.labSHA, "STATE": "started"})
	run.Annotations[pipelinesascode.Repository], run.Annotations[pipelinesascode.GitProvider] = "lab", "gitlab"
	l.status("running", "CI has Started")
	return run
}

// status sets a status at GitLab, without a ref.
func (l *left) status(state, description string) {
	l.Helper()
	body, _ := json.Marshal(map[string]any{"state": state, "name": check, "description": description})
	l.post(l.lab.URL()+"/api/v4/projects/acme%2Fapp/statuses/"+l.labSHA, "PRIVATE-TOKEN", l.labToken, body)
}

// post returns the id in the answer.
func (l *left) post(url, header, login string, body []byte) string {
	l.Helper()
	req, err := http.NewRequestWithContext(l.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		l.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(header, login)
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusCreated {
		l.Fatal(err, resp)
	}
	defer func() { _ = resp.Body.Close() }()
	var made struct{ ID int64 }
	if err := json.NewDecoder(resp.Body).Decode(&made); err != nil {
		l.Fatal(err)
	}
	return fmt.Sprint(made.ID)
}

func (l *left) finish(change ...func(*Finish)) error {
	f := &Finish{Migration: l.Migration, AppSecret: "plumbline-github-app", Global: "pipelines-as-code"}
	for _, c := range change {
		c(f)
	}
	return f.Run(l.Context())
}

// conclusionOf returns the conclusion of a run's check at GitHub.
func (l *left) conclusionOf(run string) string {
	for _, c := range l.forge.ChecksFor("acme/app", l.sha) {
		if c.ExternalID == run {
			return c.Conclusion
		}
	}
	return "none"
}

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
		leftWebhook); err == nil {
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

// While GitHub does not respond, the runs keep their finalizers, so that a later call finds them.
func TestFinishKeepsWhatItCannotConclude(t *testing.T) {
	l := newLeft(t)
	gone := ended(l.run("gone", "started"), "True", "Succeeded")
	gone.Annotations[pipelinesascode.Repository] = "deleted"
	statuses := ended(l.run("statuses", "started"), "True", "Succeeded")
	delete(statuses.Annotations, pipelinesascode.InstallationID)
	foreign := ended(l.run("foreign", "started"), "True", "Succeeded")
	foreign.Annotations[pipelinesascode.RepoURL] = "https://github.com/another/app"
	l.create(gone, statuses, foreign, ended(l.run("good", "started"), "True", "Succeeded"))
	err := l.finish()
	if err == nil || !strings.Contains(err.Error(), "3 checks could not be concluded") {
		t.Fatal(err)
	}
	l.says("Repository team-a/deleted is gone", "without a GitHub App", "Repository team-a/app is gone or has another URL")
	for run, kept := range map[string]bool{"gone": true, "statuses": true, "foreign": true, "good": false} {
		if slices.Contains(l.get(run).GetFinalizers(), finalizer) != kept {
			t.Errorf("%s has the finalizers %q", run, l.get(run).GetFinalizers())
		}
	}
	if err := l.finish(func(f *Finish) { f.LeaveChecks = true }); err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{"gone", "statuses", "foreign"} {
		if slices.Contains(l.get(run).GetFinalizers(), finalizer) || l.conclusionOf(run) != "" {
			t.Errorf("%s has the finalizers %q, and its check is %q", run, l.get(run).GetFinalizers(), l.conclusionOf(run))
		}
	}
}

func TestFinishRefuses(t *testing.T) {
	runs := func(e *left) {
		for _, name := range []string{pacController, pacWatcher} {
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
		"unfinished runs": {func(l *left) {
			l.create(l.run("running", "started"))
		}, "add --wait to wait for them, or --cancel"},
		"a running PaC": {runs, "kubectl -n openshift-pipelines scale deployment " + pacController + " " + pacWatcher +
			" --replicas=0"},
		"a PaC of the operator": {func(l *left) {
			runs(l)
			owned := deployment(pacNS, pacWatcher)
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
