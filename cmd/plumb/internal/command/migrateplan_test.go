// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/scratch"
)

// movingCluster serves the objects of testdata/pac-cluster.yaml and others to read. It fails the
// test if anything is written.
func movingCluster(t *testing.T, texts ...string) string {
	t.Helper()
	lists, objects := map[string][]any{}, map[string]any{}
	for _, text := range texts {
		for document := range strings.SplitSeq(text, "\n---\n") {
			store(t, document, lists, objects)
		}
	}
	kinds := `{"components": {"schemas": {`
	for i, kind := range []string{"PipelineRun", "TaskRun", "Task"} {
		kinds += strings.Repeat(", ", min(i, 1)) + fmt.Sprintf(
			`%q: {"x-kubernetes-group-version-kind": [{"group": "tekton.dev", "version": "v1", "kind": %q}]}`, kind, kind)
	}
	return kubeconfigOf(t, func(r *http.Request) (int, string) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s: plumb migrate plan writes", r.Method, r.URL)
		}
		at := strings.Trim(r.URL.Path, "/")
		switch {
		case at == "version":
			return http.StatusOK, `{"gitVersion": "v1.34.0"}`
		case at == "openapi/v3/apis/tekton.dev/v1":
			return http.StatusOK, kinds + "}}}"
		case objects[at] != nil:
			return http.StatusOK, marshalled(t, objects[at])
		case strings.Count(at, "/namespaces/") > 0:
			return http.StatusNotFound, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`
		}
		items := lists[at]
		if items == nil {
			items = []any{}
		}
		list := map[string]any{"metadata": map[string]any{}, "items": items}
		if len(items) > 0 {
			first, _ := items[0].(map[string]any)
			list["kind"], list["apiVersion"] = fmt.Sprint(first["kind"], "List"), first["apiVersion"]
		}
		if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") {
			list["kind"], list["apiVersion"] = "PartialObjectMetadataList", "meta.k8s.io/v1"
		}
		return http.StatusOK, marshalled(t, list)
	})
}

// store adds an object to those that its URL and the list of its kind answer.
func store(t *testing.T, document string, lists map[string][]any, objects map[string]any) {
	t.Helper()
	var object map[string]any
	must(t, yaml.Unmarshal([]byte(document), &object))
	meta, _ := object["metadata"].(map[string]any)
	group := fmt.Sprint("apis/", object["apiVersion"])
	if object["apiVersion"] == "v1" {
		group = "api/v1"
	}
	resource := strings.ToLower(fmt.Sprint(object["kind"])) + "s"
	if resource == "repositorys" {
		resource = "repositories"
	}
	if data, is := object["stringData"].(map[string]any); is {
		encoded := map[string][]byte{}
		for key, value := range data {
			encoded[key] = []byte(fmt.Sprint(value))
		}
		object["data"] = encoded
	}
	lists[group+"/"+resource] = append(lists[group+"/"+resource], object)
	objects[fmt.Sprintf("%s/namespaces/%s/%s/%s", group, meta["namespace"], resource, meta["name"])] = object
}

func marshalled(t *testing.T, object any) string {
	t.Helper()
	data, err := json.Marshal(object)
	must(t, err)
	return string(data)
}

// movingClone returns a directory with a clone of acme/app, and the objects of a cluster whose
// Pipelines-as-Code has processed its commits.
func movingClone(t *testing.T, files map[string]string) (dir, objects string) {
	t.Helper()
	repo := scratch.New(t, files)
	head := repo.Git("rev-parse", "HEAD")
	repo.Git("checkout", "--quiet", "-b", "topic")
	repo.Write(map[string]string{"docs/a.md": "a"})
	sha := repo.Commit("Write it down")
	text := string(read(t, filepath.Join("testdata", "pac-cluster.yaml")))
	return filepath.Dir(repo.Dir), strings.NewReplacer("SHA\n", sha+"\n", "MAIN\n", head+"\n").Replace(text)
}

// movingFiles are definitions of which both products start the same.
func movingFiles() map[string]string {
	return map[string]string{
		".tekton/build.yaml": run("build", `on-event: "[push, pull_request]"`, `on-target-branch: "[main]"`),
		".tekton/docs.yaml": strings.Replace(run("docs-", "on-event: pull_request", "on-target-branch: main",
			`on-path-change: "docs/**"`), "name: docs-", "generateName: docs-", 1),
		".tekton/deploy.yaml": run("deploy", `on-comment: "^/deploy"`),
	}
}

// The migration page shows what plumb migrate plan prints.
func TestMigratePlanExample(t *testing.T) {
	page := string(read(t, filepath.Join(docs, "migration.md")))
	dir, objects := movingClone(t, movingFiles())
	check(t, "migration.md", page, func(_ int, command string) answer {
		args := words(t, strings.Replace(command, "--clones src", "--clones "+dir, 1))
		got := plumb(t.Context(), t.TempDir(), "", append(args, "--kubeconfig", movingCluster(t, objects))...)
		if got.code != exitAuthor || got.said != "" {
			t.Errorf("exit %d: %s", got.code, got.said)
		}
		return got
	})
}

// moved is what plumb migrate plan -o json prints.
type moved struct {
	Blocked      bool
	Repositories struct{ Total, Unchanged, Blocked int }
	Events       struct {
		Compared, Equal int
		NotCompared     []struct{ Why string }
	}
	Findings []struct {
		Kind, Topic, Says, Page string
		Objects                 []string
	}
	MissingRights []string
}

func migratePlan(t *testing.T, kubeconfig string, args ...string) (moved, answer) {
	t.Helper()
	args = append([]string{"migrate", "plan", "-o", "json", "--kubeconfig", kubeconfig}, args...)
	got := plumb(t.Context(), t.TempDir(), "", args...)
	var read moved
	if err := json.Unmarshal([]byte(got.out), &read); err != nil {
		t.Fatalf("%v: exit %d: %s", err, got.code, got.shown)
	}
	return read, got
}

// A pipeline that only one of the products starts is reported, with the section that explains it.
func TestMigratePlanComparesPipelines(t *testing.T) {
	other := map[string]string{
		".tekton/build.yaml": run("build", "on-event: push"),
		".tekton/docs.yaml":  run("docs", `on-cel-expression: "event =="`),
		".tekton/lint.yaml":  run("lint", "on-event: pull_request", "on-target-branch: main"),
		".tekton/body.yaml":  run("body", `on-cel-expression: body.action == "opened"`),
		".tekton/push.yaml":  run("push", "on-event: push", "on-target-branch: main"),
	}
	dir, objects := movingClone(t, other)
	got, _ := migratePlan(t, movingCluster(t, objects), "--clones", dir)
	found := map[string]string{}
	for _, f := range got.Findings {
		if f.Topic == "pipeline" {
			for _, object := range f.Objects {
				found[object[strings.LastIndex(object, " ")+1:]] += f.Says + " (" + f.Page + "); "
			}
		}
	}
	for pipeline, want := range map[string]string{
		"build": "only Pipelines-as-Code starts the pipeline: no annotation on-target-branch",
		"docs":  "only Pipelines-as-Code starts the pipeline: Plumbline reports its mistake (docs/migration.md#when-a-pipeline-starts)",
		"lint":  "a file of the directory has a mistake",
		"push":  "a file of the directory has a mistake",
	} {
		if !strings.Contains(found[pipeline], want) {
			t.Errorf("%s: %q, want %q", pipeline, found[pipeline], want)
		}
	}
	if found["body"] != "" || got.Events.Compared != 2 || got.Events.Equal != 0 || len(got.Events.NotCompared) != 2 {
		t.Errorf("body: %q; events: %+v", found["body"], got.Events)
	}
}

// An older PipelineRun may have been deleted, so a pipeline without one is a difference only if no
// newer event has started it.
func TestMigratePlanIgnoresPrunedPipelineRuns(t *testing.T) {
	files := movingFiles()
	files[".tekton/docs.yaml"] = strings.Replace(
		run("docs-", `on-event: "[push, pull_request]"`, "on-target-branch: main"),
		"name: docs-",
		"generateName: docs-",
		1,
	)
	dir, objects := movingClone(t, files)
	if got, _ := migratePlan(t, movingCluster(t, objects), "--clones", dir); got.Events.Equal != 2 {
		t.Errorf("events: %+v; %+v", got.Events, got.Findings)
	}
}

func TestMigratePlanNamesMissingRights(t *testing.T) {
	_, objects := movingClone(t, movingFiles())
	for _, right := range []string{"secrets", "pipelineruns", "repositories", "rolebindings", "configmaps"} {
		file := answering(t, movingCluster(t, objects), func(r *http.Request) (int, string) {
			if strings.Contains(r.URL.Path, "/"+right) {
				return refusedBy(r)
			}
			return 0, ""
		})
		got, answered := migratePlan(t, file)
		if !strings.Contains(strings.Join(got.MissingRights, "; "), right) || answered.code == exitOK {
			t.Errorf("%s: exit %d, rights %q", right, answered.code, got.MissingRights)
		}
	}
}

// A cluster that is too old, a Repository of a service that is not served and a token without an
// App block the move.
func TestMigratePlanBlocks(t *testing.T) {
	_, objects := movingClone(t, movingFiles())
	first, _, _ := strings.Cut(objects, "\n---\napiVersion: rbac")
	first = strings.NewReplacer("many", `"5"`).Replace(first)
	const repository = "\n---\napiVersion: pipelinesascode.tekton.dev/v1alpha1\nkind: Repository\n" +
		"metadata: {name: app, namespace: team}\nspec: "
	run := func(more string) string {
		return "\n---\napiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {name: r, namespace: team, annotations: " +
			"{pipelinesascode.tekton.dev/repository: app, pipelinesascode.tekton.dev/event-type: push, " + more + "}}"
	}
	for name, test := range map[string]struct{ objects, version, says string }{
		"Kubernetes": {"", "v1.27.0", "Kubernetes is v1.27.0, older than"},
		"a service of the last PipelineRun": {
			repository + "{url: 'https://git.example.com/a/b'}" + run("pipelinesascode.tekton.dev/git-provider: gitea"), "",
			"its Git service, gitea, is not served",
		},
		"the App's Secret": {repository + "{url: 'https://github.com/a/b'}", "", ""},
		"a URL":            {repository + "{url: 'git@github.com:a/b'}", "", "its url cannot be served"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := first + test.objects
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
			if !got.Blocked || answered.code != exitAuthor || !strings.Contains(answered.out, test.says) {
				t.Errorf("exit %d: %s", answered.code, answered.shown)
			}
		})
	}
}

// Without Pipelines-as-Code there is nothing to move.
func TestMigratePlanNeedsPipelinesAsCode(t *testing.T) {
	got := plumb(t.Context(), t.TempDir(), "", "migrate", "plan", "--kubeconfig", movingCluster(t, "kind: Nothing"))
	if got.code != exitTool || !strings.Contains(got.said, "no controller of Pipelines-as-Code was found") {
		t.Errorf("exit %d: %s", got.code, got.said)
	}
}

// Nothing blocks a cluster with one Repository and the settings of a release, and 200 Repositories
// that say the same are one entry.
func TestMigratePlanIsShort(t *testing.T) {
	_, objects := movingClone(t, movingFiles())
	first, _, _ := strings.Cut(objects, "\n---\napiVersion: pipelinesascode.tekton.dev/v1alpha1")
	first, _, _ = strings.Cut(first, "\n---\napiVersion: rbac")
	cluster := []string{strings.NewReplacer("many", `"5"`, "tekton-dashbord-url", "tekton-dashboard-url").Replace(first)}
	for i := range 200 {
		cluster = append(cluster, fmt.Sprintf("apiVersion: pipelinesascode.tekton.dev/v1alpha1\nkind: Repository\n"+
			"metadata: {name: r%d, namespace: team}\nspec: {url: 'https://github.com/acme/r%d'}", i, i))
	}
	got := plumb(t.Context(), t.TempDir(), "", "migrate", "plan", "--kubeconfig", movingCluster(t, cluster...))
	if got.code != exitOK || !strings.Contains(got.out, "200 of 200 Repositories can move as they are.") {
		t.Errorf("exit %d: %s", got.code, got.shown)
	}
	for i := range 200 {
		cluster[i+1] += "\n  settings: {ai: {enabled: true, provider: openai, secret_ref: {name: x}, roles: []}}"
		cluster[i+1] = strings.Replace(cluster[i+1], "spec: {url: ", "spec:\n  url: ", 1)
		cluster[i+1] = strings.Replace(cluster[i+1], "'}", "'", 1)
	}
	got = plumb(t.Context(), t.TempDir(), "", "migrate", "plan", "--kubeconfig", movingCluster(t, cluster...))
	if got.code != exitOK || strings.Count(got.out, "\n") > 40 || !strings.Contains(got.out, "200: team/r") {
		t.Errorf("exit %d: %s", got.code, got.shown)
	}
	table := plumb(
		t.Context(),
		t.TempDir(),
		"",
		"migrate",
		"plan",
		"-o",
		"markdown",
		"--kubeconfig",
		movingCluster(t, cluster...),
	)
	if !strings.Contains(table.out, "\n## Differs after the move\n\n| what | where | to do |\n|---|---|---|\n") {
		t.Errorf("%s", table.out)
	}
}

// answering returns a kubeconfig of a cluster that is like another one, apart from some answers.
func answering(t *testing.T, kubeconfig string, other func(r *http.Request) (int, string)) string {
	t.Helper()
	found := regexp.MustCompile(`server: '([^']+)'`).FindStringSubmatch(string(read(t, kubeconfig)))
	return kubeconfigOf(t, func(r *http.Request) (int, string) {
		if status, body := other(r); status != 0 {
			return status, body
		}
		request, err := http.NewRequestWithContext(r.Context(), r.Method, found[1]+r.URL.RequestURI(), nil)
		must(t, err)
		request.Header = r.Header.Clone()
		request.Header.Del("Accept-Encoding")
		response, err := http.DefaultClient.Do(request)
		must(t, err)
		defer func() { _ = response.Body.Close() }()
		data, err := io.ReadAll(response.Body)
		must(t, err)
		return response.StatusCode, string(data)
	})
}
