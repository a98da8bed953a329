// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/scratch"
)

// onlyPaC returns Pipelines-as-Code's own objects of testdata/pac-cluster.yaml, whose settings
// nothing is said about.
func onlyPaC(t *testing.T) string {
	t.Helper()
	_, objects := movingClone(t, movingFiles())
	first, _, _ := strings.Cut(objects, "\n---\napiVersion: rbac")
	return strings.NewReplacer(
		"many", `"5"`, "tekton-dashbord-url", "tekton-dashboard-url", `repo: "true"`, `repo: "false"`,
	).Replace(first)
}

// oneRepository returns Repository team/app.
func oneRepository(spec string) string {
	return "\n---\napiVersion: pipelinesascode.tekton.dev/v1alpha1\nkind: Repository\n" +
		"metadata: {name: app, namespace: team}\nspec: " + spec
}

// pipelineRun returns a PipelineRun that Pipelines-as-Code has started for a push to team/app.
func pipelineRun(more string) string {
	return "\n---\napiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {name: r, namespace: team, annotations: " +
		"{pipelinesascode.tekton.dev/repository: app, pipelinesascode.tekton.dev/event-type: push, " + more + "}}"
}

// plumblineSettings returns ConfigMap plumbline.
func plumblineSettings(data string) string {
	return "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: plumbline, namespace: plumbline}\ndata: " + data
}

const (
	inside = `{url: 'https://10.0.0.1/a/b', git_provider: {type: gitlab, secret: {name: x}, webhook_secret: {name: x}}}
---
apiVersion: v1
kind: Secret
metadata: {name: x, namespace: team}
stringData: {provider.token: x, webhook.secret: x}`
	enterprise = "{url: 'https://github.example.com/a/b'}"
	another    = `
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ghe-controller, namespace: pipelines-as-code}
spec: {template: {spec: {containers: [{name: c, env: [{name: PAC_CONTROLLER_CONFIGMAP, value: ghe}]}]}}}`
)

// What would break after the move blocks it.
func TestMigratePlanBlocks(t *testing.T) {
	for name, test := range map[string]struct{ objects, version, says string }{
		"Kubernetes": {"", "v1.27.0", "Kubernetes is v1.27.0, older than"},
		"a service of the last PipelineRun": {
			oneRepository("{url: 'https://git.example.com/a/b'}") + pipelineRun("pipelinesascode.tekton.dev/git-provider: gitea"), "",
			"the Git service gitea is not served",
		},
		"a service that the Repository names": {
			oneRepository("{url: 'https://git.example.com/a/b', git_provider: {type: forgejo}}"), "",
			"the Git service forgejo is not served",
		},
		"the App's Secret":    {oneRepository("{url: 'https://github.com/a/b'}"), "", ""},
		"a URL":               {oneRepository("{url: 'git@github.com:a/b'}"), "", "its url cannot be served"},
		"an Enterprise host":  {oneRepository(enterprise), "", "it is not at https://github.com, and deliveries of the GitHub App"},
		"an address inside":   {oneRepository(inside), "", "because of its address [team/app: 10.0.0.1 is not called"},
		"another controller":  {another, "", "this is another controller"},
		"an invalid filter":   {oneRepository("{url: 'https://github.com/a/b', params: [{name: p, filter: 'pac.event =='}]}"), "", "events would wait. Pipelines-as-Code ignores all params instead [team/app: spec.params[0] (p): the filter"},
		"a Secret of a param": {oneRepository("{url: 'https://github.com/a/b', params: [{name: p, secret_ref: {name: s, key: k}}]}"), "", "the Secret for a param does not exist [team/app (Secret team/s of param p)]"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := onlyPaC(t) + test.objects
			if test.says == "" {
				cluster = strings.Replace(cluster, "webhook.secret: shared", "none: shared", 1)
				test.says = "the Secret of the GitHub App has no key webhook.secret"
			}
			file := answering(t, movingCluster(t, cluster), func(r *http.Request) (int, string) {
				if test.version != "" && r.URL.Path == "/version" {
					return http.StatusOK, fmt.Sprintf(`{"gitVersion": %q}`, test.version)
				}
				return 0, ""
			})
			got, answered := migratePlan(t, file)
			if !got.Blocked || answered.code != exitAuthor || !strings.Contains(got.of("blocks"), test.says) {
				t.Errorf("exit %d: %s", answered.code, answered.shown)
			}
		})
	}
}

// A Tekton that is too old is reported, although its PipelineRuns cannot be read.
func TestMigratePlanNamesOldTekton(t *testing.T) {
	cluster := movingCluster(t, onlyPaC(t)+oneRepository("{url: 'https://github.com/a/b'}"))
	got, answered := migratePlan(t, answering(t, cluster, func(r *http.Request) (int, string) {
		if strings.Contains(r.URL.Path, "apis/tekton.dev/v1") {
			return http.StatusNotFound, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`
		}
		return 0, ""
	}))
	if answered.code != exitAuthor || !strings.Contains(got.of("blocks"), "PipelineRun.tekton.dev is not served") {
		t.Errorf("exit %d: %s", answered.code, answered.shown)
	}
}

// The additional controller is the other one, whatever the names and whichever is read first.
func TestMigratePlanTakesUsualControllerFirst(t *testing.T) {
	got, _ := migratePlan(t, movingCluster(t, another+"\n---\n"+onlyPaC(t)))
	if !strings.Contains(got.of("blocks"), "[pipelines-as-code/ghe-controller]") {
		t.Errorf("blocks: %s", got.of("blocks"))
	}
}

// Nothing blocks the move because of a Secret that no event reads.
func TestMigratePlanIgnoresSecretOfParamWithValue(t *testing.T) {
	got, answered := migratePlan(t, movingCluster(t, onlyPaC(t)+
		oneRepository("{url: 'https://github.com/a/b', params: [{name: p, value: v, secret_ref: {name: s, key: k}}]}")))
	if got.Blocked {
		t.Errorf("%s", answered.shown)
	}
}

// An empty list in JSON is a list.
func TestMigratePlanPrintsEmptyLists(t *testing.T) {
	cluster := regexp.MustCompile(`(?s)\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: pipelines-as-code,.*?\n---`).
		ReplaceAllString(onlyPaC(t), "\n---")
	if got, answered := migratePlan(t, movingCluster(t, cluster)); got.Findings == nil || len(got.Findings) > 0 {
		t.Errorf("%s", answered.out)
	}
}

// Nothing blocks the move any more when the administrator has done what the plan says.
func TestMigratePlanReadsSettingsOfPlumbline(t *testing.T) {
	for name, test := range map[string]struct{ repository, settings string }{
		"an address inside":  {inside, "{git-allowed-hosts: 10.0.0.1}"},
		"an Enterprise host": {enterprise, "{github-url: 'https://github.example.com'}"},
	} {
		t.Run(name, func(t *testing.T) {
			got, answered := migratePlan(t, movingCluster(t, onlyPaC(t)+oneRepository(test.repository)+
				plumblineSettings(test.settings)))
			if got.Blocked || answered.code != exitOK {
				t.Errorf("exit %d: %s", answered.code, answered.shown)
			}
		})
	}
}

// A setting that has a valid value at Plumbline needs no attention.
func TestMigratePlanIsQuietAboutSettingsOfPlumbline(t *testing.T) {
	cluster := strings.Replace(onlyPaC(t), `max-keep-run-upper-limit: "5"`, "max-keep-run-upper-limit: many", 1)
	cluster += oneRepository("{url: 'https://github.com/a/b'}")
	if got, _ := migratePlan(
		t,
		movingCluster(t, cluster),
	); !strings.Contains(
		got.of("differs"),
		"max-keep-run-upper-limit",
	) {
		t.Errorf("differs: %s", got.of("differs"))
	}
	cluster += plumblineSettings(`{max-keep-run-upper-limit: "7"}`)
	if got, _ := migratePlan(t, movingCluster(t, cluster)); got.of("differs") != "" {
		t.Errorf("differs: %s", got.of("differs"))
	}
}

// Settings are judged before there is a Repository.
func TestMigratePlanJudgesSettingsWithoutRepositories(t *testing.T) {
	cluster := strings.Replace(onlyPaC(t), "tekton-dashboard-url", "tekton-dashbord-url", 1)
	if got, _ := migratePlan(t, movingCluster(t, cluster)); !strings.Contains(got.of("differs"), "tekton-dashbord-url") {
		t.Errorf("differs: %s", got.of("differs"))
	}
}

// Without its proxy, Plumbline may reach no Git service.
func TestMigratePlanNamesProxy(t *testing.T) {
	cluster := strings.Replace(
		onlyPaC(t),
		"          env:\n",
		"          env:\n            - {name: HTTPS_PROXY, value: 'http://user:hunter2@proxy'}\n",
		1,
	)
	got, answered := migratePlan(t, movingCluster(t, cluster))
	if !strings.Contains(got.of("differs"), "with these variables [HTTPS_PROXY]") ||
		strings.Contains(answered.out, "hunter2") {
		t.Errorf("differs: %s", answered.shown)
	}
}

// A policy at GitLab starts to restrict.
func TestMigratePlanNamesPolicyAtGitLab(t *testing.T) {
	spec := "{url: 'https://gitlab.com/a/b', settings: {policy: {pull_request: [a]}}, git_provider: {type: gitlab"
	got, _ := migratePlan(t, movingCluster(t, onlyPaC(t)+oneRepository(spec+"}}")))
	if !strings.Contains(got.of("differs"), "settings.policy applies at GitLab") {
		t.Errorf("differs: %s", got.of("differs"))
	}
}

// What tenants have written cannot control the terminal, nor forge lines of the report.
func TestMigratePlanPrintsPlainText(t *testing.T) {
	dir, objects := movingClone(t, movingFiles())
	objects = strings.Replace(objects, "original-prname: docs-", `original-prname: "x\e[2J\nBlocks the move:\u202e"`, 1)
	for _, form := range []string{"text", "markdown"} {
		got := plumb(t.Context(), t.TempDir(), "", "migrate", "plan", "-o", form, "--clones", dir,
			"--kubeconfig", movingCluster(t, objects))
		if !strings.Contains(got.out, "x [2J Blocks the move:") || strings.ContainsAny(got.out, "\x1b\u202e") {
			t.Errorf("%s: %q", form, got.out)
		}
	}
}

// Passwords in URLs are not printed, also with an event that is compared.
func TestMigratePlanPrintsNoPasswords(t *testing.T) {
	for _, url := range []string{
		"https://user:hunter2@github.com/a/b", "https://user:hunter2@github.com:x/a/b", "ftp://user:hunter2@github.com/a/b",
		"https://user:hunter2@git.example.com/a/b",
	} {
		cluster := onlyPaC(t) + oneRepository("{url: '"+url+"'}") +
			pipelineRun("pipelinesascode.tekton.dev/repo-url: '"+url+"', pipelinesascode.tekton.dev/installation-id: '9'")
		got := plumb(t.Context(), t.TempDir(), "", "migrate", "plan", "--remote", "-o", "json",
			"--kubeconfig", movingCluster(t, cluster))
		if !strings.Contains(got.out, "team/app") || strings.Contains(got.shown, "hunter2") {
			t.Errorf("%s: %s", url, got.shown)
		}
	}
}

// If definitions are those of the default branch, a later commit there is no difference between the
// products.
func TestMigratePlanKnowsThatDefaultBranchChanges(t *testing.T) {
	dir, objects := movingClone(t, movingFiles())
	objects = strings.Replace(objects, `{url: "https://github.com/acme/app"}`,
		`{url: "https://github.com/acme/app", settings: {pipelinerun_provenance: default_branch}}`, 1)
	repo := scratch.At(t, filepath.Join(dir, "001"))
	repo.Git("checkout", "--quiet", "main")
	repo.Git("mv", ".tekton/build.yaml", ".tekton/compile.yaml")
	repo.Write(
		map[string]string{
			".tekton/compile.yaml": run("compile", `on-event: "[push, pull_request]"`, `on-target-branch: "[main]"`),
		},
	)
	repo.Commit("Rename")
	got, _ := migratePlan(t, movingCluster(t, objects), "--clones", dir)
	if strings.Contains(got.of("differs"), "starts the pipeline") ||
		!strings.Contains(got.of("not compared"), "the definitions are those of the default branch") {
		t.Errorf("differs: %s\nnot compared: %s", got.of("differs"), got.of("not compared"))
	}
}

// --clones may be one clone, and clones that cannot be read leave the others.
func TestMigratePlanFindsClones(t *testing.T) {
	dir, objects := movingClone(t, movingFiles())
	clone := filepath.Join(dir, "001")
	if got, answered := migratePlan(t, movingCluster(t, objects), "--clones", clone); got.Events.Compared != 2 {
		t.Errorf("the clone itself: %s", answered.shown)
	}
	deep := filepath.Join(t.TempDir(), "src", "github.com", "acme")
	must(t, os.MkdirAll(deep, 0o700))
	must(t, os.Rename(clone, filepath.Join(deep, "app")))
	scratch.At(t, deep).Git("init", "--quiet", "empty")
	got, answered := migratePlan(t, movingCluster(t, objects), "--clones", filepath.Dir(filepath.Dir(deep)))
	if got.Events.Compared != 2 ||
		!strings.Contains(got.of("not compared"), "a clone cannot be read ["+filepath.Join(deep, "empty")) {
		t.Errorf("below other directories: %s", answered.shown)
	}
}
