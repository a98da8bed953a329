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
		case strings.Contains(at, "/namespaces/") && lists[at] == nil:
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
	namespaced := fmt.Sprintf("%s/namespaces/%s/%s", group, meta["namespace"], resource)
	for _, list := range []string{group + "/" + resource, namespaced} {
		lists[list] = append(lists[list], object)
	}
	objects[fmt.Sprint(namespaced, "/", meta["name"])] = object
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
