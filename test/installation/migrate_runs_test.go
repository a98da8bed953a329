// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/config"
)

func (m *migration) served(ctx context.Context, want string) {
	m.Helper()
	cm, err := m.Kube.CoreV1().ConfigMaps(m.Namespace).Get(ctx, config.Name, metav1.GetOptions{})
	if err != nil || cm.Data["serve-namespaces"] != want {
		m.Errorf("%v: it serves %q, want %q", err, cm.Data["serve-namespaces"], want)
	}
}

// onlyOneServes requires that Plumbline's list names namespaces, so that PaC serves all others.
func (m *migration) onlyOneServes(ctx context.Context) {
	m.Helper()
	cm, err := m.Kube.CoreV1().ConfigMaps(m.Namespace).Get(ctx, config.Name, metav1.GetOptions{})
	both := []string{m.Namespace, m.Namespace + ", " + m.team}
	if err != nil || cm.Data["pipelines-as-code-url"] == "" || !slices.Contains(both, cm.Data["serve-namespaces"]) {
		m.Errorf("%v: the ConfigMap is %v", err, cm.Data)
	}
}

// run creates a PipelineRun as PaC writes it, and its open check at GitHub.
func (m *migration) run(
	ctx context.Context, name, state string, change func(*pipelinev1.PipelineRun),
) string {
	m.Helper()
	top, err := root()
	must(m.T, err)
	text, err := os.ReadFile(filepath.Join(top, "cmd/plumb/internal/migrate/testdata/pipelinerun.yaml"))
	must(m.T, err)
	run := &pipelinev1.PipelineRun{}
	must(m.T, yaml.Unmarshal([]byte(strings.NewReplacer("NAMESPACE", m.team, "NAME", name, "REPOSITORY", "app",
		"URL", m.repo.HTMLURL, "SHA", m.sha, "STATE", state).Replace(string(text))), run))
	run.Finalizers = []string{pacFinalizer} // nothing here removes that of Tekton Chains
	if state != "completed" {
		id := m.pending(name)
		run.Annotations[pipelinesascode.CheckRunID], run.Labels[pipelinesascode.CheckRunID] = id, id
		run.Annotations[pipelinesascode.InstallationID] = fmt.Sprint(m.install)
	}
	change(run)
	must(m.T, first(m.Tekton.TektonV1().PipelineRuns(m.team).Create(ctx, run, metav1.CreateOptions{})))
	return name
}

// pending creates PaC's open check of a run.
func (m *migration) pending(run string) string {
	m.Helper()
	body, err := json.Marshal(map[string]any{
		"name": "Pipelines as Code CI / build", "head_sha": m.sha, "status": "in_progress", "external_id": run,
		"output": map[string]string{"title": "CI has Started", "summary": "is running"},
	})
	must(m.T, err)
	req, err := http.NewRequestWithContext(m.Context(), http.MethodPost,
		shared.Forge.APIURL()+"repos/acme/migrated/check-runs", bytes.NewReader(body))
	must(m.T, err)
	req.Header.Set("Authorization", "Bearer "+shared.Forge.Mint(m.install))
	resp, err := http.DefaultClient.Do(req)
	must(m.T, err)
	defer func() { _ = resp.Body.Close() }()
	var made struct{ ID int64 }
	must(m.T, json.NewDecoder(resp.Body).Decode(&made))
	return fmt.Sprint(made.ID)
}

func (m *migration) conclusion(run string) string {
	for _, c := range shared.Forge.ChecksFor("acme/migrated", m.sha) {
		if c.ExternalID == run {
			return c.Conclusion
		}
	}
	return "none"
}

// pages creates more finished PipelineRuns than one list returns. They fail without a pod.
func (m *migration) pages(ctx context.Context) {
	m.Helper()
	for n := range 201 {
		m.run(ctx, fmt.Sprint("reported-", n), "completed", func(run *pipelinev1.PipelineRun) {
			run.Spec = pipelinev1.PipelineRunSpec{PipelineRef: &pipelinev1.PipelineRef{Name: "missing"}}
		})
	}
	eventually(ctx, m.T, "all runs have finished", func() error {
		list, err := m.Tekton.TektonV1().PipelineRuns(m.team).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, run := range list.Items {
			if !run.IsDone() {
				return fmt.Errorf("%s has not", run.Name)
			}
		}
		return nil
	})
}

// stopPaC scales its Deployments to zero. Nothing here creates their pods.
func (m *migration) stopPaC(ctx context.Context) {
	m.Helper()
	for _, name := range []string{"pipelines-as-code-controller", "pipelines-as-code-watcher"} {
		_, err := m.Kube.AppsV1().Deployments(pacNamespace).
			Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
		must(m.T, err)
	}
	eventually(ctx, m.T, "Pipelines-as-Code has stopped", func() error {
		list, err := m.Kube.AppsV1().Deployments(pacNamespace).List(ctx, metav1.ListOptions{})
		for _, d := range list.Items {
			if d.Status.Replicas != 0 {
				return fmt.Errorf("%s has %d replicas", d.Name, d.Status.Replicas)
			}
		}
		return err
	})
}

// nothingLost requires that a run that can be deleted has its check concluded.
func (m *migration) nothingLost(ctx context.Context, want map[string]string) {
	m.Helper()
	for name, conclusion := range want {
		run, err := m.Tekton.TektonV1().PipelineRuns(m.team).Get(ctx, name, metav1.GetOptions{})
		must(m.T, err)
		got := m.conclusion(name)
		if !slices.Contains(run.Finalizers, pacFinalizer) && got != conclusion || got != "" && got != conclusion {
			m.Errorf("%s has the finalizers %q, and its check is %q", name, run.Finalizers, got)
		}
	}
}

// released requires that every PipelineRun can be deleted.
func (m *migration) released(ctx context.Context) {
	m.Helper()
	runs := m.Tekton.TektonV1().PipelineRuns(m.team)
	must(m.T, runs.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	eventually(ctx, m.T, "every PipelineRun is deleted", func() error {
		list, err := runs.List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%s is still there, with the finalizers %q", list.Items[0].Name, list.Items[0].Finalizers)
		}
		return err
	})
	_, err := m.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, leftOver, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		m.Errorf("the webhook configuration: %v", err)
	}
}
