// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/pac"
	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
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
	// hookSHA is a commit of a repository at GitHub that is served without an App.
	hookURL, hookSHA, hookToken string
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

	l.hookURL = l.forge.CreateRepo("acme", "hooked", forge.RepoOptions{}).HTMLURL
	l.hookSHA = l.forge.Commit("acme/hooked", "main", forge.Change{Files: map[string]string{"a": "b"}, Message: "x"})
	l.hookToken = l.forge.CreateToken(forge.NewToken{Repo: "acme/hooked"})

	owner := repository(team, "app", l.web)
	lab := repository(team, "lab", l.labURL)
	lab.Spec.GitProvider = &pacv1alpha1.GitProvider{Type: "gitlab", Secret: &pacv1alpha1.Secret{Name: "lab"}}
	hooked, named := repository(team, "hooked", l.hookURL), &pacv1alpha1.Secret{Name: "hooked"}
	hooked.Spec.GitProvider = &pacv1alpha1.GitProvider{Type: "github", Secret: named, WebhookSecret: named}
	l.env = newEnv(t, owner, lab, hooked, claim(owner), claim(lab), claim(hooked))
	l.withRuns()
	l.set("pipelines-as-code-url", pacURL, "serve-namespaces", "plumbline, team-*", "github-url", l.forge.URL(),
		"git-allowed-hosts", "127.0.0.1")
	l.put(pacConfig("application-name", "Acme CI"))
	theirs := secret(pacNS, "pipelines-as-code-secret")
	theirs.Data = map[string][]byte{
		"github-application-id": []byte(fmt.Sprint(app.ID)), "github-private-key": []byte(app.PrivateKeyPEM),
	}
	hook := secret(team, "hooked", "webhook.secret")
	hook.Data["provider.token"] = []byte(l.hookToken)
	token := secret(team, "lab")
	l.labToken = l.lab.CreateToken(gitlab.NewToken{Project: "acme/app", Level: gitlab.Maintainer}).Value
	token.Data["provider.token"] = []byte(l.labToken)
	l.put(
		theirs,
		hook,
		token,
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: pacWebhookConfig}},
	)
	for _, name := range []string{pac.ControllerName, pac.WatcherName, pac.WebhookName} {
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

// hookRun is one at GitHub without an App, whose status PaC has set with a token.
func (l *left) hookRun(name string) *pipelinev1.PipelineRun {
	l.Helper()
	run := golden(l.T, name, map[string]string{"URL": l.hookURL, "SHA": l.hookSHA, "STATE": "started"})
	run.Annotations[pipelinesascode.Repository] = "hooked"
	l.hookStatus("CI has Started")
	return run
}

// hookStatus sets a pending status at GitHub.
func (l *left) hookStatus(description string) {
	l.Helper()
	body, _ := json.Marshal(map[string]any{"state": "pending", "context": check, "description": description})
	l.post(l.forge.APIURL()+"repos/acme/hooked/statuses/"+l.hookSHA, "Authorization", "Bearer "+l.hookToken, body)
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
