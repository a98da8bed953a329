// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

const dashboard = "https://dashboard.example"

// D7: the create request of a PipelineRun has everything that is known by then: the labels and
// annotations that Pipelines as Code's tools read, state started, log-url and the name of the
// git-auth secret, which exists before the run. Later patches add only the check's id and state
// completed.
func TestCreateRequestCarriesAllMetadata(t *testing.T) {
	forEachService(t, setup{
		receivers: 1, controllers: 1, proxied: true, config: [][3]string{{"plumbline", "tekton-dashboard-url", dashboard}},
	}, createsWithEverythingKnown)
}

func createsWithEverythingKnown(t *testing.T, env *environment) {
	versions := env.watchRuns()
	sha, delivery := env.push(map[string]string{".tekton/run.yaml": pipeline("Known_Name", "push", held)})
	env.deliver(delivery, http.StatusAccepted)
	event := env.awaitRunsCreated(sha)
	name, secret := event.Status.Runs[0].Name, event.Status.Runs[0].Secret
	if _, err := env.Kube.CoreV1().Secrets(env.ci).Get(env.ctx, secret, metav1.GetOptions{}); err != nil {
		t.Errorf("the git-auth secret of a run that goes on: %v", err)
	}
	env.requireSecretFirst(name)
	env.releaseRuns(event)
	check := env.awaitCheck(sha, checkName("Known_Name"), "success", soon)
	env.awaitSettled(sha, soon)

	var seen []*pipelinev1.PipelineRun
	env.eventually(soon, "the watch has seen the last version", func() error {
		for {
			select {
			case change := <-versions:
				if run, ok := change.Object.(*pipelinev1.PipelineRun); ok && run.Name == name {
					seen = append(seen, run)
				}
			default:
				if n := len(seen); n == 0 || seen[n-1].ResourceVersion != env.getRun(name).ResourceVersion {
					return fmt.Errorf("%d versions", n)
				}
				return nil
			}
		}
	})
	labels, annotations := env.wantedMetadata(delivery, event)
	if diff := cmp.Diff(labels, ownKeys(seen[0].Labels)); diff != "" {
		t.Errorf("labels at creation (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(annotations, ownKeys(seen[0].Annotations)); diff != "" {
		t.Errorf("annotations at creation (-want +got):\n%s", diff)
	}
	for _, added := range []map[string]string{labels, annotations} {
		added[pipelinesascode.State] = pipelinesascode.StateCompleted
	}
	annotations[pipelinesascode.StartReported] = "true"
	if pipeline, _, isStatus := strings.Cut(check.ID, "/"); isStatus {
		annotations[pipelinesascode.GitLabPipelineID] = pipeline
	} else {
		labels[pipelinesascode.CheckRunID], annotations[pipelinesascode.CheckRunID] = check.ID, check.ID
	}
	last := seen[len(seen)-1]
	if diff := cmp.Diff([]map[string]string{labels, annotations},
		[]map[string]string{ownKeys(last.Labels), ownKeys(last.Annotations)}); diff != "" {
		t.Errorf("labels and annotations at the end (-want +got):\n%s", diff)
	}
}

// watchRuns watches the environment's PipelineRuns from now on.
func (env *environment) watchRuns() <-chan watch.Event {
	env.t.Helper()
	client := env.Tekton.TektonV1().PipelineRuns(env.ci)
	list, err := client.List(env.ctx, metav1.ListOptions{})
	env.must(err)
	watcher, err := client.Watch(env.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	env.must(err)
	env.t.Cleanup(watcher.Stop)
	return watcher.ResultChan()
}

// requireSecretFirst requires that the run's secret was created before the run. The environment
// has only this run, and the proxy cannot read the name in a Secret's protobuf.
func (env *environment) requireSecretFirst(run string) {
	env.t.Helper()
	at := map[string]int{}
	for _, call := range env.controller().Proxy.Calls() {
		if call.Verb == "create" && call.Namespace == env.ci && call.Status == http.StatusCreated &&
			(call.Name == run || call.Resource == "secrets") {
			at[call.Resource] = call.N
		}
	}
	if at["secrets"] == 0 || at["pipelineruns"] == 0 || at["secrets"] > at["pipelineruns"] {
		env.t.Errorf("calls by resource %v, want the secret created before the run", at)
	}
}

// ownKeys returns the labels or annotations that are not Tekton's or the test's.
func ownKeys(all map[string]string) map[string]string {
	kept := map[string]string{}
	for key, value := range all {
		prefix, _, _ := strings.Cut(key, "/")
		switch {
		case key == pipelinesascode.OnEvent, key == pipelinesascode.OnTargetBranch: // written by the author
		case prefix == pipelinesascode.GroupName, prefix == plumbline.GroupName, prefix == "results.tekton.dev",
			key == pipelinesascode.ManagedByLabel, key == pipelinesascode.VersionLabel:
			kept[key] = value
		}
	}
	return kept
}

// wantedMetadata returns what Pipelines as Code's tools read for a push to main of a GitLab, or of
// a GitHub Enterprise Server, which the forge stands for.
func (env *environment) wantedMetadata(d delivery, e *v1alpha1.GitEvent) (labels, annotations map[string]string) {
	env.t.Helper()
	const p = "pipelinesascode.tekton.dev/"
	var push struct {
		After        string
		Commits      []struct{ URL string }
		Sender       struct{ Login string }
		Username     string `json:"user_username"`
		Installation struct{ ID int64 }
	}
	_, body := partsOf(d)
	env.must(json.Unmarshal(body, &push))
	sha, event, secret, run := push.After, e.Name, e.Status.Runs[0].Secret, e.Status.Runs[0].Name
	labels = map[string]string{
		"app.kubernetes.io/managed-by": "pipelinesascode.tekton.dev", "app.kubernetes.io/version": "devel",
		p + "url-org": "acme", p + "url-repository": "app", p + "sha": sha, p + "repository": "app", p + "state": "started",
		p + "event-type": "push", p + "original-prname": "Known_Name", p + "branch": "refs-heads-main",
		p + "git-provider": string(env.git.kind()), p + "sender": push.Sender.Login + push.Username,
		"plumbline.dev/event": event, "plumbline.dev/installation": env.Namespace, "plumbline.dev/attempt": "1",
	}
	annotations = map[string]string{
		p + "sha-title": "change " + env.t.Name(), p + "sha-url": push.Commits[0].URL, p + "repo-url": env.git.page(),
		p + "source-repo-url": env.git.page(), p + "url-org": "acme", p + "url-repository": "app", p + "sha": sha,
		p + "sender": push.Sender.Login + push.Username, p + "event-type": "push", p + "branch": "refs/heads/main",
		p + "source-branch": "refs/heads/main",
		p + "repository":    "app", p + "git-provider": string(env.git.kind()), p + "secret-created": "true",
		p + "controller-info": `{"name":"default","configmap":"pipelines-as-code","secret":"pipelines-as-code-secret", "gRepo": "pipelines-as-code"}`,
		p + "original-prname": "Known_Name", p + "git-auth-secret": secret, p + "state": "started",
		p + "log-url":           dashboard + "/#/namespaces/" + env.ci + "/pipelineruns/" + run,
		"plumbline.dev/run-key": env.Namespace + "/" + event + "/.tekton/run.yaml#0",
		"results.tekton.dev/recordSummaryAnnotations": `{"repo":"app","commit":"` + sha + `","eventType":"push"}`,
	}
	if g, isGitLab := env.git.(*onGitLab); isGitLab {
		labels[p+"url-org"], annotations[p+"url-org"] = "acme-team", "acme/team"
		for _, project := range []string{p + "source-project-id", p + "target-project-id"} {
			labels[project] = strconv.FormatInt(g.repo.ID, 10)
			annotations[project] = labels[project]
		}
		return labels, annotations
	}
	annotations[p+"installation-id"] = strconv.FormatInt(push.Installation.ID, 10)
	annotations[p+"ghe-url"] = "https://" + strings.TrimPrefix(env.git.url(), "http://")
	return labels, annotations
}
