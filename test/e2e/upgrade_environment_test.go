// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/plumbline-ci/plumbline/test/forge"
)

// A version is left while its events are in these states; see testdata/upgrade/README.md.
const (
	upReceived = "received" // recorded, and no controller has seen it
	upPulled   = "pulled"   // the same, of a pull request
	upPlanned  = "planned"  // its plan is stored, its run is not created
	upMade     = "made"     // its run is created, and that is not recorded
	upPosted   = "posted"   // its run goes on; GitHub has the check, and its id is not recorded
	upRunning  = "running"  // its run goes on, its check says so
	upFinished = "finished" // its run is finished, its check is still in progress
	upReported = "reported" // its check is completed, and its stored data is not deleted
	upSettled  = "settled"
)

func upgradeStates() []string {
	return []string{upReceived, upPulled, upPlanned, upMade, upPosted, upRunning, upFinished, upReported, upSettled}
}

// upgradeWord is the value of a secret param that every pipeline has: stored plans have a Secret.
const upgradeWord = "the word that the team keeps"

// recordedForge is where the GitHub of recorded objects listens: an address of the loopback
// network that nothing else uses.
const recordedForge = "127.77.11.10:8077"

// newUpgradeEnvironment returns an environment without processes whose names, addresses, ids and
// commits are the same each time. It also returns the commits by state: each is the tip of a
// branch of that name, which has one pipeline of that name.
func newUpgradeEnvironment(t *testing.T) (*environment, map[string]string) {
	t.Helper()
	var goes atomic.Bool
	clock := func() time.Time { // all commits have the same time
		if goes.Load() {
			return time.Now()
		}
		return time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	}
	env := newEnvironment(t, setup{recorded: true, private: true, forge: forge.Options{Addr: recordedForge, Now: clock}})
	_, err := env.Kube.CoreV1().Secrets(env.ci).Create(env.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "words"}, StringData: map[string]string{"one": upgradeWord},
	}, metav1.CreateOptions{})
	env.must(err)
	_, err = env.Plumbline.PipelinesascodeV1alpha1().Repositories(env.ci).Patch(env.ctx, "app", types.MergePatchType,
		[]byte(`{"spec":{"params":[{"name":"word","secret_ref":{"name":"words","key":"one"}}]}}`), metav1.PatchOptions{})
	env.must(err)
	env.git.commit("main", forge.Change{Files: map[string]string{"README": "words"}, Message: "begin"})
	commits := map[string]string{}
	for _, state := range upgradeStates() {
		commits[state] = env.git.commit(state,
			forge.Change{Files: map[string]string{".tekton/run.yaml": upgradePipeline(state)}, Message: state})
	}
	goes.Store(true)
	return env, commits
}

func upgradePipeline(state string) string {
	text := onTekton(pipeline(state, "push, pull_request"))
	if state == upRunning || state == upFinished || state == upPosted || state == upMade {
		text = onTekton(pipeline(state, "push, pull_request", held))
	}
	text = strings.Replace(text, `on-target-branch: "[main]"`, `on-target-branch: "[*]"`, 1)
	return strings.Replace(text, "  params:\n", "  params:\n    - {name: word, value: '{{ word }}'}\n", 1)
}

// upgradeKinds are the kinds of objects that a version leaves behind, in the order of their
// restoration: those whose UIDs others name come first.
func upgradeKinds() []schema.GroupVersionResource {
	plumbline := schema.GroupVersion{Group: "plumbline.dev", Version: "v1alpha1"}
	return []schema.GroupVersionResource{
		plumbline.WithResource("repositoryclaims"), plumbline.WithResource("gitevents"),
		{Group: "tekton.dev", Version: "v1", Resource: "pipelineruns"},
		plumbline.WithResource("eventpayloads"), {Version: "v1", Resource: "secrets"},
	}
}

// ownObjects returns the objects of a kind in both namespaces that Plumbline created.
func (env *environment) ownObjects(kind schema.GroupVersionResource) []unstructured.Unstructured {
	env.t.Helper()
	client, err := dynamic.NewForConfig(env.Cluster.RESTConfig())
	env.must(err)
	var all []unstructured.Unstructured
	for _, namespace := range []string{env.Namespace, env.ci} {
		list, err := client.Resource(kind).Namespace(namespace).List(env.ctx, metav1.ListOptions{})
		env.must(err)
		for _, object := range list.Items {
			if kind.Resource != "secrets" || object.GetLabels()["plumbline.dev/event"] != "" {
				all = append(all, object)
			}
		}
	}
	return all
}

// runsOfState returns the PipelineRuns of a state.
func (env *environment) runsOfState(state string) (names []string) {
	for _, run := range env.runs() {
		if strings.HasPrefix(run.Name, state+"-") {
			names = append(names, fmt.Sprintf("%s %s", run.Name, run.UID))
		}
	}
	return names
}
