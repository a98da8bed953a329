// SPDX-License-Identifier: Apache-2.0

package command

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/scratch"
)

const repositoryFile = `apiVersion: pipelinesascode.tekton.dev/v1alpha1
kind: Repository
metadata: {name: app, namespace: team}
spec:
  url: https://github.com/acme/app
  params: [{name: tier, value: gold}, {name: token, secret_ref: {name: vault, key: token}}]
`

const configFile = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plumbline}\ndata: {secret-auto-create: 'false'}\n"

// speaks is a pipeline whose script is a text.
func speaks(name, script string, annotations ...string) string {
	return strings.Replace(run(name, append(annotations, "on-event: pull_request", "on-target-branch: main")...),
		"echo {{ revision }}", script, 1)
}

// Each case is a pipeline and what the answer says of it.
func TestSources(t *testing.T) {
	for name, test := range map[string]struct {
		pipeline string
		args     []string
		table    string // what the table says
		yaml     string // what the PipelineRun says
		prepare  func(*scratch.Repo)
	}{
		"a param of the Repository": {
			pipeline: speaks("a", "tier {{ tier }}"), table: "a         yes", yaml: "script: tier gold\n",
		},
		"a param that is given": {
			pipeline: speaks("a", "tier {{ tier }}"), args: []string{"--param", "tier=silver"}, yaml: "script: tier silver\n",
		},
		"the Repository's namespace": {pipeline: speaks("a", "in {{ target_namespace }}"), yaml: "script: in team\n"},
		"the ConfigMap": {
			pipeline: speaks("a", "x"), args: []string{"--config", "config.yaml"}, yaml: "secret-created: \"false\"\n",
		},
		"the default ConfigMap": {pipeline: speaks("a", "x"), yaml: "secret-created: \"true\"\n"},
		"the value of a secret is its name": {
			pipeline: speaks("a", "token {{ token }}"), table: "a         yes", yaml: "script: token <secret vault/token>\n",
		},
		"what the value of a secret decides": {pipeline: run("a", `on-cel-expression: token == "x"`),
			table: "a         unknown  it depends on secret team/vault, which is not read (--from-cluster reads it, --param sets the param)"},
		"a secret that is given": {
			pipeline: run("a", `on-cel-expression: token == "x"`), args: []string{"--param=token=x"}, table: "a         yes",
		},
		"the payload of a described event": {pipeline: run("a", `on-cel-expression: body.action == "opened"`),
			table: "a         unknown  reading the payload: only a real delivery has one: give it with --payload and --headers"},
		"a file of the repository": {pipeline: run("a", "on-event: pull_request", "on-target-branch: main",
			"task: '[tasks/x.yaml]'"),
			prepare: func(r *scratch.Repo) { r.Write(map[string]string{"tasks/x.yaml": "x: y\n"}) },
			table:   "tasks/x.yaml holds no Task"},
		"the default branch's definitions, and none that it does not have": {pipeline: speaks("a", "x"),
			args: []string{"--repository", "default.yaml"},
			prepare: func(r *scratch.Repo) {
				r.Write(map[string]string{
					"default.yaml": repositoryFile + "  settings: {pipelinerun_provenance: default_branch}\n",
				})
			}, table: "WHY\nbuild     yes"},
		"of a Repository whose URL is spelt otherwise": {pipeline: speaks("a", "from {{ source_url }} to {{ repo_url }}"),
			args: []string{"--repository=spelt.yaml"},
			prepare: func(r *scratch.Repo) {
				r.Write(map[string]string{"spelt.yaml": strings.Replace(repositoryFile, "https://github.com/acme/app",
					"https://github.com/Acme/app.git/", 1)})
			}, yaml: "script: from https://github.com/Acme/app to https://github.com/Acme/app\n"},
		"of a fork": {pipeline: speaks("a", "from {{ source_url }} to {{ repo_url }}"),
			prepare: func(r *scratch.Repo) { r.Git("remote", "set-url", "origin", "https://github.com/dev/app") },
			table:   "Assumed: dev may write to the repository",
			yaml:    "script: from https://github.com/dev/app to https://github.com/acme/app\n"},
		"the key of the delivery": {pipeline: speaks("a", "x"), args: []string{"--delivery=72d3162e"}, yaml: "name: a-"},
		"the number": {
			pipeline: speaks("a", "{{ pull_request_number }}"), args: []string{"--number=7"}, yaml: `pull-request: "7"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			repo := topic(t, nil)
			if test.prepare != nil {
				test.prepare(repo)
			}
			repo.Write(map[string]string{
				".tekton/a.yaml": test.pipeline, "repository.yaml": repositoryFile, "config.yaml": configFile,
			})
			args := append([]string{"plan", "--repository=repository.yaml"}, test.args...)
			if table := plumb(t.Context(), repo.Dir, "", args...); !strings.Contains(table.out+table.said, test.table) ||
				table.code == exitTool {
				t.Errorf("exit %d, table:\n%s%s\nwant %q", table.code, table.out, table.said, test.table)
			}
			if yaml := plumb(t.Context(), repo.Dir, "", append(args, "-o=yaml")...); !strings.Contains(yaml.out, test.yaml) ||
				yaml.code == exitTool {
				t.Errorf("exit %d, YAML:\n%s%s\nwant %q", yaml.code, yaml.out, yaml.said, test.yaml)
			}
		})
	}
}

const task = "apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: x}\nspec: {steps: [{name: s, image: from-the-web}]}\n"

// Nothing but --fetch and --from-cluster reaches for the network: neither the remote nor the proxy
// nor the cluster nor what annotations refer to is asked.
func TestNoNetwork(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		_, _ = w.Write([]byte(task))
	}))
	defer server.Close()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, server.URL)
	}
	t.Setenv("NO_PROXY", "")
	repo := topic(t, map[string]string{".tekton/web.yaml": run("web", "on-event: '[push, pull_request]'",
		"on-target-branch: main", "task: "+server.URL+"/x.yaml") +
		"---\n" + run("hub", "on-event: pull_request", "on-target-branch: main", "task: git-clone")})
	config := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plumbline}\ndata: {remote-allowed-hosts: 127.0.0.1, hub-url: '" + server.URL + "'}\n"
	kubeconfig := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: '" + server.URL +
		"'}}]\ncontexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n"
	repo.Write(map[string]string{"config.yaml": config, "kubeconfig": kubeconfig})
	repo.Git("remote", "set-url", "origin", server.URL+"/acme/app.git")
	t.Setenv("KUBECONFIG", repo.Dir+"/kubeconfig")
	for _, args := range [][]string{{"plan"}, {"plan", "--push=main"}, {"plan", "-o", "yaml", "--base=nowhere"},
		{"version"}, {"completion", "bash"}} {
		if args[0] == "plan" {
			args = append(args, "--config=config.yaml")
		}
		if got := plumb(t.Context(), repo.Dir, "", args...); got.code != exitOK || len(asked) != 0 {
			t.Fatalf("plumb %v asked the network for %q; exit %d: %s", args, asked, got.code, got.said)
		}
	}
	// This test can fail: with the flags the same server is asked.
	got := plumb(t.Context(), repo.Dir, "", "plan", "--config=config.yaml", "--fetch", "-o=yaml")
	if len(asked) == 0 || !strings.Contains(got.out, "\n  name: web-") {
		t.Errorf("--fetch asked for %q; exit %d: %s%s", asked, got.code, got.out, got.said)
	}
	before := len(asked)
	if got := plumb(t.Context(), repo.Dir, "", "plan", "--from-cluster"); got.code != exitTool || len(asked) == before {
		t.Errorf("--from-cluster asked for %q; exit %d: %s", asked, got.code, got.said)
	}
}

// What a cluster has is what the controller would plan with. Only GETs are sent, and no value of a
// Secret is printed.
func TestFromCluster(t *testing.T) {
	objects := map[string]string{
		"/api/v1/namespaces/plumbline/configmaps/plumbline": `{"apiVersion": "v1", "kind": "ConfigMap", "data": {"secret-auto-create": "false", "app-name": "x"}}`,
		"/apis/pipelinesascode.tekton.dev/v1alpha1/repositories": `{"apiVersion": "pipelinesascode.tekton.dev/v1alpha1", "kind": "RepositoryList", "items": [
			{"metadata": {"name": "app", "namespace": "team"}, "spec": {"url": "https://github.com/acme/app", "params": [{"name": "token", "secret_ref": {"name": "vault", "key": "token"}}]}}]}`,
		"/api/v1/namespaces/team/secrets/vault": `{"apiVersion": "v1", "kind": "Secret", "data": {"token": "aHVudGVyMg=="}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		object, found := objects[r.URL.Path]
		if !found || r.Method != http.MethodGet {
			w.WriteHeader(http.StatusNotFound)
			object = `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}`
		}
		_, _ = w.Write([]byte(object))
	}))
	defer server.Close()
	repo := topic(t, map[string]string{".tekton/a.yaml": speaks("a", "{{ token }} in {{ target_namespace }}"),
		".tekton/b.yaml": run("b", `on-cel-expression: token.startsWith("hunt")`)})
	repo.Write(map[string]string{"kubeconfig": "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: '" +
		server.URL + "'}}]\ncontexts: [{name: x, context: {cluster: c}}]\n"})
	args := []string{"plan", "--from-cluster", "--kubeconfig=kubeconfig", "--context=x"}
	table, yaml := plumb(t.Context(), repo.Dir, "", args...), plumb(t.Context(), repo.Dir, "", append(args, "-o=yaml")...)
	if table.code != exitOK || !strings.Contains(table.out, "\nb         yes") ||
		!strings.Contains(table.said, `plumb: the ConfigMap has a mistake; the rest of it is used: key "app-name"`) {
		t.Errorf("exit %d: %s%s", table.code, table.out, table.said)
	}
	if !strings.Contains(yaml.out, "script: <secret vault/token> in team\n") ||
		!strings.Contains(yaml.out, `secret-created: "false"`) || strings.Contains(yaml.shown+table.shown, "hunter2") {
		t.Errorf("exit %d: %s%s", yaml.code, yaml.out, yaml.said)
	}
}
