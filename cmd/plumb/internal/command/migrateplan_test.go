// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

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
	Blocked       bool
	Installations []struct{ Namespace string }
	Repositories  struct{ Total, Unchanged, Blocked int }
	Events        struct{ Compared, Equal int }
	Findings      []struct {
		Kind, Topic, Says, Page string
		Objects                 []string
	}
	MissingRights []string
}

// of returns the findings of a kind, one a line: what it says, the objects, the page.
func (m moved) of(kind string) string {
	var lines []string
	for _, f := range m.Findings {
		if f.Kind == kind {
			lines = append(lines, f.Says+" ["+strings.Join(f.Objects, ", ")+"] "+f.Page)
		}
	}
	return strings.Join(lines, "\n")
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
		".tekton/docs.yaml":  run("docs", `on-event: "[push, pull_request]"`, `on-target-branch: "[]"`),
		".tekton/lint.yaml":  run("lint", "on-event: pull_request", "on-target-branch: main"),
		".tekton/body.yaml":  run("body", `on-cel-expression: body.action == "opened"`),
		".tekton/push.yaml":  run("push", "on-event: push", "on-target-branch: main"),
	}
	dir, objects := movingClone(t, other)
	got, _ := migratePlan(t, movingCluster(t, objects), "--clones", dir)
	found := map[string]string{}
	for _, f := range got.Findings {
		if f.Topic == "pipeline" && f.Kind == "differs" {
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
	if found["body"] != "" || got.Events.Compared != 2 || got.Events.Equal != 0 {
		t.Errorf("body: %q; events: %+v", found["body"], got.Events)
	}
	for _, says := range []string{
		"the event is a comment, whose text is not recorded [team-a/app]",
		"a decision depends on what the PipelineRuns do not say: reading the payload: the payload is not known here [team-a/app at ",
	} {
		if !strings.Contains(got.of("not compared"), says) {
			t.Errorf("not compared: %s, want %q", got.of("not compared"), says)
		}
	}
}

// PipelineRuns do not record the labels and the title of a pull request.
func TestMigratePlanKnowsWhatIsNotRecorded(t *testing.T) {
	files := movingFiles()
	files[".tekton/build.yaml"] = run("build", "on-event: pull_request", "on-target-branch: main", "on-label: ready")
	files[".tekton/docs.yaml"] = run("docs", `on-cel-expression: event_title == "A pull request"`)
	dir, objects := movingClone(t, files)
	got, _ := migratePlan(t, movingCluster(t, objects), "--clones", dir)
	if differs := got.of("differs"); strings.Contains(differs, ": docs") || strings.Count(differs, ": build") != 1 {
		t.Errorf("differs: %s, want build of the push", differs)
	}
	for _, name := range []string{": build]", ": docs]"} {
		if !strings.Contains(got.of("not compared"), name) {
			t.Errorf("not compared: %s", got.of("not compared"))
		}
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

// Without Pipelines-as-Code there is nothing to move.
func TestMigratePlanNeedsPipelinesAsCode(t *testing.T) {
	cluster := movingCluster(t, "kind: Nothing")
	for _, file := range []string{cluster, answering(t, cluster, func(r *http.Request) (int, string) {
		if strings.Contains(r.URL.Path, "/configmaps/") {
			return refusedBy(r)
		}
		return 0, ""
	})} {
		got := plumb(t.Context(), t.TempDir(), "", "migrate", "plan", "--kubeconfig", file)
		if got.code != exitTool || !strings.Contains(got.said, "no controller of Pipelines-as-Code was found") {
			t.Errorf("exit %d: %s%s", got.code, got.said, got.out)
		}
	}
}

// Pipelines-as-Code is found by its Deployment, whatever its namespace. An account that may not
// list Deployments finds it in the usual namespaces, and names another one.
func TestMigratePlanFindsPipelinesAsCodeInAnyNamespace(t *testing.T) {
	for _, c := range []struct {
		namespace, named string
		lists, found     bool
	}{
		{"pipelines-as-code", "", false, true},
		{"openshift-pipelines", "", false, true},
		{"tekton-pipelines", "", false, true},
		{"ci", "", true, true},
		{"ci", "", false, false},
		{"ci", "ci", false, true},
		{"ci", "other", false, false},
	} {
		cluster := movingCluster(t, strings.ReplaceAll(onlyPaC(t), "namespace: pipelines-as-code", "namespace: "+c.namespace))
		file := answering(t, cluster, func(r *http.Request) (int, string) {
			if !c.lists && r.URL.Path == "/apis/apps/v1/deployments" {
				return refusedBy(r)
			}
			return 0, ""
		})
		got := plumb(t.Context(), t.TempDir(), "", "migrate", "plan", "-o", "json", "--kubeconfig", file,
			"--pac-namespace", c.named)
		var read moved
		found := json.Unmarshal([]byte(got.out), &read) == nil && len(read.Installations) == 1 &&
			read.Installations[0].Namespace == c.namespace
		if keys := strings.Contains(read.of("same"), c.namespace+"/pipelines-as-code: the keys"); found != c.found || keys != c.found {
			t.Errorf("%+v: found: %t, its ConfigMap: %t: exit %d: %s", c, found, keys, got.code, got.shown)
		}
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
