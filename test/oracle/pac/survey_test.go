// SPDX-License-Identifier: Apache-2.0

package pac

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"sigs.k8s.io/yaml"
)

func sortedKeys(all map[string]string) []string { return slices.Sorted(maps.Keys(all)) }

// moduleDir returns where the Go command keeps a module of this one's.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("go list %s: %v", module, err)
	}
	return strings.TrimSpace(string(out))
}

// report is what `plumb migrate plan -o json` prints.
type report struct {
	Repositories struct{ Total int }
	Events       struct{ Compared, Equal int }
	Findings     []struct {
		Kind, Topic, Says, Page string
		Objects                 []string
	}
}

// Pipelines-as-Code processes events of public repositories, and `plumb migrate plan` reads the
// PipelineRuns that it creates. The documentation names each difference.
func TestDifferencesInPublicTreesAreDocumented(t *testing.T) {
	clones := t.TempDir()
	var repositories []any
	var runs []pipelinev1.PipelineRun
	for i, all := range trees(t) {
		url := fmt.Sprintf("https://github.com/acme/tree-%03d-%s", i, all.name)
		repositories = append(repositories, map[string]any{
			"apiVersion": "pipelinesascode.tekton.dev/v1alpha1", "kind": "Repository",
			"metadata": map[string]any{"namespace": namespace, "name": filepath.Base(url)}, "spec": map[string]any{"url": url},
		})
		for n, o := range occurrences(t, filepath.Join(clones, filepath.Base(url)), url, all) {
			for k, run := range start(t, all, o) {
				run.Name = fmt.Sprintf("run-%d-%d-%d", i, n, k)
				runs = append(runs, run)
			}
		}
	}
	if len(runs) < 100 {
		t.Fatalf("Pipelines-as-Code started %d PipelineRuns only", len(runs))
	}
	got := migrate(t, clones, repositories, runs)
	t.Logf("%d Repositories, %d PipelineRuns of Pipelines-as-Code, %d events compared, %d equal",
		got.Repositories.Total, len(runs), got.Events.Compared, got.Events.Equal)
	for _, finding := range got.Findings {
		if finding.Kind == "differs" && finding.Topic != "pipeline" {
			t.Errorf("the settings of the release: %s: %s", finding.Says, strings.Join(finding.Objects, ", "))
		}
		if finding.Kind != "differs" || finding.Topic != "pipeline" {
			continue
		}
		t.Logf("%s (%s): %d", finding.Says, finding.Page, len(finding.Objects))
		if finding.Page == "" {
			t.Errorf("no page names: %s: %s", finding.Says, strings.Join(finding.Objects, ", "))
		}
	}
	if got.Events.Compared < 100 {
		t.Errorf("only %d events were compared", got.Events.Compared)
	}
}

// occurrences makes a clone with the tree, and returns events of its commits.
func occurrences(t *testing.T, dir, url string, all tree) []occurrence {
	t.Helper()
	changed := []string{"README.md", "cmd/main.go", "doc/a.md", "docs/a.md", "go.mod"}
	write := func(files map[string]string) {
		for name, text := range files {
			at := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	first := map[string]string{}
	for _, name := range changed {
		first[name] = "1"
	}
	for name, text := range all.files {
		first[".tekton/"+name] = text
	}
	write(first)
	command := func(args ...string) string { return gitCommand(t, dir, args...) }
	command("init", "--quiet", "--initial-branch=main")
	command("remote", "add", "origin", url)
	commit := func(text string) string {
		files := map[string]string{}
		for _, name := range changed {
			files[name] = text
		}
		write(files)
		command("add", "--all")
		command("commit", "--quiet", "--message=A title")
		return command("rev-parse", "HEAD")
	}
	commit("1")
	pushed := commit("2")
	command("branch", "release-1")
	command("checkout", "--quiet", "-b", "topic")
	pull := commit("3")
	return []occurrence{
		{url: url, sha: pushed, branch: "refs/heads/main", from: "refs/heads/main", changed: changed},
		{url: url, sha: pushed, branch: "refs/heads/release-1", from: "refs/heads/release-1", changed: changed},
		{url: url, sha: pushed, branch: "refs/tags/v1.0.0", from: "refs/tags/v1.0.0", changed: changed},
		{url: url, sha: pull, branch: "main", from: "topic", number: 7, changed: changed},
		{url: url, sha: pull, branch: "release-1", from: "topic", number: 8, changed: changed},
	}
}

func gitCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir = dir
	command.Env = append(
		os.Environ(),
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Dev",
		"GIT_AUTHOR_EMAIL=dev@example.com",
		"GIT_COMMITTER_NAME=Dev",
		"GIT_COMMITTER_EMAIL=dev@example.com",
	)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// migrate runs `plumb migrate plan` of this repository.
func migrate(t *testing.T, clones string, repositories []any, runs []pipelinev1.PipelineRun) report {
	t.Helper()
	plumb := filepath.Join(t.TempDir(), "plumb")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", plumb, "./cmd/plumb")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building plumb: %v\n%s", err, out)
	}
	list := exec.CommandContext(t.Context(), plumb, "migrate", "plan", "--clones", clones, "--events", "20", "-o", "json",
		"--kubeconfig", surveyed(t, repositories, runs))
	var out, said bytes.Buffer
	list.Stdout, list.Stderr = &out, &said
	if err := list.Run(); err != nil {
		t.Fatalf("plumb migrate plan: %v\n%s", err, said.String())
	}
	var got report
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// released returns the ConfigMap of the release, in which nothing is inlined.
func released(t *testing.T) any {
	t.Helper()
	file := filepath.Join(
		moduleDir(t, "github.com/openshift-pipelines/pipelines-as-code"),
		"config/302-pac-configmap.yaml",
	)
	var configMap struct {
		Data map[string]string `json:"data"`
	}
	if err := yaml.Unmarshal([]byte(read(t, file)), &configMap); err != nil {
		t.Fatal(err)
	}
	configMap.Data["remote-tasks"] = "false"
	return configMap
}

// surveyed is an API server of a cluster with Pipelines-as-Code. It returns a kubeconfig.
func surveyed(t *testing.T, repositories []any, runs []pipelinev1.PipelineRun) string {
	t.Helper()
	var metadata []any
	for _, run := range runs {
		metadata = append(metadata, map[string]any{
			"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": run.ObjectMeta,
		})
	}
	list := func(apiVersion, kind string, items []any) any {
		if items == nil {
			items = []any{}
		}
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{}, "items": items}
	}
	schemas := map[string]any{}
	for _, kind := range []string{"PipelineRun", "TaskRun", "Task"} {
		schemas[kind] = map[string]any{"x-kubernetes-group-version-kind": []any{
			map[string]string{"group": "tekton.dev", "version": "v1", "kind": kind},
		}}
	}
	deployment := map[string]any{
		"metadata": map[string]any{"namespace": "pipelines-as-code", "name": "pipelines-as-code-controller"},
	}
	secret := map[string]any{
		"metadata": map[string]any{"namespace": "pipelines-as-code", "name": "pipelines-as-code-secret"},
		"data": map[string][]byte{
			"github-application-id": []byte("1"), "github-private-key": []byte("x"), "webhook.secret": []byte("x"),
		},
	}
	answers := map[string]any{
		"/version":                       map[string]string{"gitVersion": "v1.34.0"},
		"/openapi/v3/apis/tekton.dev/v1": map[string]any{"components": map[string]any{"schemas": schemas}},
		"/api/v1/namespaces/tekton-pipelines/configmaps/pipelines-info": map[string]any{
			"data": map[string]string{"version": "v1.6.0"},
		},
		"/api/v1/namespaces/pipelines-as-code/configmaps/pipelines-as-code":     released(t),
		"/api/v1/namespaces/pipelines-as-code/secrets/pipelines-as-code-secret": secret,
		"/apis/apps/v1/deployments":                       list("apps/v1", "DeploymentList", []any{deployment}),
		"/apis/rbac.authorization.k8s.io/v1/rolebindings": list("rbac.authorization.k8s.io/v1", "RoleBindingList", nil),
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings": list("rbac.authorization.k8s.io/v1",
			"ClusterRoleBindingList", nil),
		"/apis/pipelinesascode.tekton.dev/v1alpha1/repositories": list(
			"pipelinesascode.tekton.dev/v1alpha1",
			"RepositoryList",
			repositories,
		),
		"/apis/tekton.dev/v1/pipelineruns": list("meta.k8s.io/v1", "PartialObjectMetadataList", metadata),
	}
	answers["/api/v1/namespaces/plumbline/configmaps/plumbline"] = http.StatusNotFound
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := answers[r.URL.Path]
		if answer == nil {
			t.Errorf("plumb reads %s", r.URL.Path)
			answer = http.StatusNotFound
		}
		if status, is := answer.(int); is {
			w.WriteHeader(status)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
  clusters: [{name: c, cluster: {server: %q}}]}`, server.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
