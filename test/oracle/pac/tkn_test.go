// SPDX-License-Identifier: Apache-2.0

// Package pac names the release of Pipelines-as-Code that the oracle builds. Its test shows
// Plumbline's objects to the command line tool of that release.
package pac

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openshift-pipelines/pipelines-as-code/pkg/cli"
	"github.com/openshift-pipelines/pipelines-as-code/pkg/cmd/tknpac/deleterepo"
	"github.com/openshift-pipelines/pipelines-as-code/pkg/cmd/tknpac/describe"
	"github.com/openshift-pipelines/pipelines-as-code/pkg/cmd/tknpac/info"
	"github.com/openshift-pipelines/pipelines-as-code/pkg/cmd/tknpac/listcmd"
	"github.com/openshift-pipelines/pipelines-as-code/pkg/cmd/tknpac/logs"
	"github.com/openshift-pipelines/pipelines-as-code/pkg/cmd/tknpac/resolve"
	"github.com/openshift-pipelines/pipelines-as-code/pkg/params"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// golden are PipelineRuns as Plumbline creates them; the tests of pkg/pipeline/resources compare
// them.
const golden = "../../../pkg/pipeline/resources/testdata"

const repository = `{"apiVersion": "pipelinesascode.tekton.dev/v1alpha1", "kind": "Repository",
  "metadata": {"name": "app-repo", "namespace": "ci"}, "spec": {"url": "https://ghe.example.com:8443/Acme/App"},
  "status": {"recent": [{"event": "push-1", "outcome": "Succeeded", "time": "2026-01-02T03:04:05Z"}]}}`

// pipelineRun reads one of the golden files, and gives it a commit and a result.
func pipelineRun(t *testing.T, file, sha, status, reason, began string) *unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(golden, file))
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.ReplaceAll(data, []byte("0123456789abcdef0123456789abcdef01234567"), []byte(sha))
	run := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(data, &run.Object); err != nil {
		t.Fatal(err)
	}
	run.SetName(strings.TrimSuffix(file, ".yaml"))
	run.Object["status"] = map[string]any{
		"startTime": began, "completionTime": "2026-01-02T03:30:00Z",
		"conditions": []any{map[string]any{"type": "Succeeded", "status": status, "reason": reason}},
	}
	return run
}

// serve is an API server with one Repository and these PipelineRuns. It returns a kubeconfig.
func serve(t *testing.T, runs ...*unstructured.Unstructured) string {
	t.Helper()
	routes := http.NewServeMux()
	const repositories = "GET /apis/pipelinesascode.tekton.dev/v1alpha1/namespaces/ci/repositories"
	write := func(w http.ResponseWriter, body string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(body))
	}
	routes.HandleFunc(repositories, func(w http.ResponseWriter, _ *http.Request) {
		write(w, `{"apiVersion": "pipelinesascode.tekton.dev/v1alpha1", "kind": "RepositoryList", "items": [`+repository+`]}`)
	})
	const deleted = "DELETE /apis/pipelinesascode.tekton.dev/v1alpha1/namespaces/ci/repositories/app-repo"
	routes.HandleFunc(deleted, func(w http.ResponseWriter, _ *http.Request) {
		write(w, `{"apiVersion": "v1", "kind": "Status", "status": "Success"}`)
	})
	routes.HandleFunc(repositories+"/app-repo", func(w http.ResponseWriter, _ *http.Request) { write(w, repository) })
	routes.HandleFunc("GET /apis/tekton.dev/v1/namespaces/ci/pipelineruns", func(w http.ResponseWriter, r *http.Request) {
		selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
		if err != nil {
			t.Error(err)
		}
		items := []any{}
		for _, run := range runs {
			if selector.Matches(labels.Set(run.GetLabels())) {
				items = append(items, run.Object)
			}
		}
		body, err := json.Marshal(map[string]any{"apiVersion": "tekton.dev/v1", "kind": "PipelineRunList", "items": items})
		if err != nil {
			t.Error(err)
		}
		write(w, string(body))
	})
	server := httptest.NewServer(routes)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
  clusters: [{name: c, cluster: {server: %q}}]}`, server.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// execute runs a command of `tkn pac`.
func execute(out io.Writer, args ...string) error {
	run, streams := params.New(), &cli.IOStreams{In: http.NoBody, Out: out, ErrOut: out}
	root := &cobra.Command{Use: "tkn-pac", SilenceUsage: true}
	run.Info.Kube.AddFlags(root)
	root.AddCommand(listcmd.Root(run, streams), describe.Root(run, streams), logs.Command(run, streams),
		resolve.Command(run, streams), deleterepo.Root(run, streams), info.Root(run, streams))
	root.SetArgs(args)
	return root.Execute()
}

// tkn returns what a command of `tkn pac` prints.
func tkn(t *testing.T, kubeconfig string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := execute(&out, append(args, "--kubeconfig="+kubeconfig)...); err != nil {
		t.Fatalf("tkn pac %s: %v", args, err)
	}
	return out.String()
}

// asTkn is the variable with which the test's program is `tkn pac`: its command logs replaces its
// process.
const asTkn = "PLUMBLINE_TEST_AS_TKN_PAC"

func TestMain(m *testing.M) {
	if os.Getenv(asTkn) == "" {
		os.Exit(m.Run())
	}
	if err := execute(os.Stdout, os.Args[1:]...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// The commands list and describe of `tkn pac` show the PipelineRuns of a Repository: they need the
// labels and annotations that Plumbline gives them, and no pipelinerun_status. Of the runs of one
// commit they show one.
func TestTknPacShowsPipelineRuns(t *testing.T) {
	newer, older := strings.Repeat("a", 40), strings.Repeat("b", 40)
	kubeconfig := serve(t, pipelineRun(t, "push.yaml", older, "True", "Succeeded", "2026-01-02T03:04:05Z"),
		pipelineRun(t, "pull_request.yaml", newer, "False", "Failed", "2026-01-02T03:14:05Z"))
	list := tkn(t, kubeconfig, "list", "-n=ci")
	for _, words := range []string{"app-repo", "aaaaaaa", "Failed"} {
		if !strings.Contains(list, words) {
			t.Errorf("list does not show %q:\n%s", words, list)
		}
	}
	text := tkn(t, kubeconfig, "describe", "app-repo", "-n=ci")
	for _, words := range []string{
		"Failed", "pull_request", "main", `Fix: "it"`, "https://github.com/Acme/App/commit/" + newer,
		"Succeeded", "push", "bbbbbbb",
	} {
		if !strings.Contains(text, words) {
			t.Errorf("describe does not show %q:\n%s", words, text)
		}
	}
}

// A Repository without PipelineRuns is no error.
func TestTknPacShowsRepositoriesWithoutPipelineRuns(t *testing.T) {
	kubeconfig := serve(t)
	if list := tkn(t, kubeconfig, "list", "-n=ci"); !strings.Contains(list, "NoRun") {
		t.Errorf("list shows\n%s", list)
	}
	if text := tkn(t, kubeconfig, "describe", "app-repo", "-n=ci"); !strings.Contains(text, "No runs has started") {
		t.Errorf("describe shows\n%s", text)
	}
}

// The command logs finds the newest PipelineRun of a Repository by its label, and passes it to tkn,
// which is a program that prints its arguments here.
func TestTknPacShowsLogs(t *testing.T) {
	sha := strings.Repeat("a", 40)
	kubeconfig := serve(t, pipelineRun(t, "push.yaml", sha, "True", "Succeeded", "2026-01-02T03:04:05Z"),
		pipelineRun(t, "pull_request.yaml", sha, "False", "Failed", "2026-01-02T03:14:05Z"))
	program := filepath.Join(t.TempDir(), "tkn")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	logs := exec.CommandContext(t.Context(), os.Args[0], "logs", "app-repo", "-n=ci", "--last", "--tkn-path="+program,
		"--kubeconfig="+kubeconfig)
	logs.Env = append(os.Environ(), asTkn+"=1")
	out, err := logs.CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != "pr logs -f -n ci pull_request" {
		t.Errorf("%q: %v", got, err)
	}
}

// The command resolve reads files only. It needs no object of an installation.
func TestTknPacResolvesDirectory(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{
		"run.yaml": `apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: build
spec:
  params: [{name: revision, value: "{{ revision }}"}]
  pipelineRef: {name: build}
`,
		"pipeline.yaml": `apiVersion: tekton.dev/v1
kind: Pipeline
metadata:
  name: build
spec:
  tasks: [{name: unit, taskSpec: {steps: [{name: s, image: busybox, script: "true"}]}}]
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := tkn(t, serve(t), "resolve", "-f", dir, "-p", "revision=0123456", "--no-secret")
	for _, words := range []string{"generateName: build-", `value: "0123456"`, "image: busybox"} {
		if !strings.Contains(text, words) {
			t.Errorf("resolve does not print %q:\n%s", words, text)
		}
	}
}

func TestTknPacDeletesRepository(t *testing.T) {
	text := tkn(t, serve(t), "delete", "repository", "app-repo", "-n=ci")
	if !strings.Contains(text, "repository app-repo has been deleted") {
		t.Errorf("delete prints %s", text)
	}
}

// The command info install looks for PaC's Deployment, which Plumbline does not have:
// docs/migration.md says what to use instead.
func TestTknPacInfoInstallFindsNoInstallation(t *testing.T) {
	err := execute(io.Discard, "info", "install", "--kubeconfig="+serve(t))
	if err == nil || !strings.Contains(err.Error(), "cannot find your pipelines-as-code installation") {
		t.Errorf("info install: %v", err)
	}
}
