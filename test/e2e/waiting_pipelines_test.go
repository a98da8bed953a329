// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// B3, B4: while the changed files cannot be listed, the pipelines that do not depend on them run
// once each. The others are decided afterwards, with the controller killed in between.
func TestWaitingPipelineBlocksNoOther(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, waitingPipelineBlocksNoOther)
}

func waitingPipelineBlocksNoOther(t *testing.T, env *environment) {
	const filter = "pipelinesascode.tekton.dev/on-path-change: "
	env.push(map[string]string{
		".tekton/1.yaml": pipeline("one", "push"), ".tekton/2.yaml": pipeline("two", "push"),
		".tekton/3.yaml": pipeline("three", "push"),
		".tekton/4.yaml": pipeline("four", "push"), ".tekton/5.yaml": pipeline("docs", "push", filter+"'docs/**'"),
		".tekton/6.yaml": pipeline("code", "push", filter+"'*.go'"),
	})
	outage := env.git.inject(listChanges, forge.Fault{Do: forge.ServerError502HTML()})
	sha, delivery := env.push(map[string]string{"docs/a.md": "words"})
	env.deliver(delivery, http.StatusAccepted)
	for _, name := range []string{"one", "two", "three", "four"} {
		env.awaitCheck(sha, checkName(name), "success", soon)
	}
	env.eventually(soon, "two decisions are open", func() error {
		reasons := env.planReasons(delivery)
		if !strings.HasPrefix(reasons["docs"], "waiting: listing the changed files") ||
			!strings.HasPrefix(reasons["code"], "waiting: ") {
			return fmt.Errorf("%v", reasons)
		}
		return nil
	})
	env.restart(env.controller())
	outage.Remove()
	env.awaitCheck(sha, checkName("docs"), "success", afterFault)
	env.awaitAllSettled(afterFault)
	env.requireOnlyStarted("docs", "four", "one", "three", "two")
	if got := env.planReasons(delivery)["code"]; !strings.HasPrefix(got, "on-path-change [*.go] matches no changed file") {
		t.Errorf("code: %q, want that no file matched", got)
	}
	env.requireNoFailure(sha)
}

// B9: an event waits while the global Repository cannot be read, and is processed with its
// settings.
func TestEventWaitsForGlobalRepository(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true}, eventWaitsForGlobalRepository)
}

func eventWaitsForGlobalRepository(t *testing.T, env *environment) {
	const global = "pipelines-as-code"
	env.controller().Proxy.Add(cluster.Rule{
		Match: func(c cluster.Call) bool { return c.Is("get", "repositories") && c.Name == global },
		Do:    cluster.Fault(cluster.Unavailable()),
	})
	trusted, _ := env.push(map[string]string{".tekton/a.yaml": pipeline("trusted", "push")})
	sha := env.git.commit("topic", forge.Change{
		Files: map[string]string{".tekton/a.yaml": strings.Replace(pipeline("changed", "push"), "[main]", "[topic]", 1)},
	})
	env.deliver(env.git.pushed("refs/heads/topic"), http.StatusAccepted)
	env.eventually(soon, "the plan waits", func() error {
		for _, event := range env.events() {
			for _, wait := range event.Status.Waits {
				if wait.Step == "plan" && strings.Contains(wait.Message,
					"reading the global Repository "+env.Namespace+"/"+global) {
					return nil
				}
			}
		}
		return fmt.Errorf("%+v", env.events())
	})
	if checks := env.git.checks(sha); len(checks) != 0 || len(env.runs()) != 0 {
		t.Fatalf("%d checks, %d runs: want none", len(checks), len(env.runs()))
	}
	_, err := env.Plumbline.PipelinesascodeV1alpha1().Repositories(env.Namespace).Create(env.ctx, &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Name: global},
		Spec:       pacv1alpha1.RepositorySpec{Settings: &pacv1alpha1.Settings{PipelineRunProvenance: "default_branch"}},
	}, metav1.CreateOptions{})
	env.must(err)
	events := env.awaitAllSettled(afterFault)
	if plan := events[0].Status.Plan; plan.DefinitionSHA != trusted ||
		events[0].Status.Disposition != v1alpha1.DispositionIgnored {
		t.Errorf("%+v: want the definitions of the default branch at %s, which are not for topic", events[0].Status, trusted)
	}
}
