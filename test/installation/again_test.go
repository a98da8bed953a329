// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// versions returns what the API server changes when an object changes: the resource version, and of
// a Deployment, whose status its controller writes, the generation.
func versions(ctx context.Context, t *testing.T, objects []*unstructured.Unstructured) map[string]string {
	t.Helper()
	groups, err := restmapper.GetAPIGroupResources(shared.Kube.Discovery())
	must(t, err)
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	client, err := dynamic.NewForConfig(shared.Cluster.RESTConfig())
	must(t, err)
	found := map[string]string{}
	for _, object := range objects {
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		must(t, err)
		resource := client.Resource(mapping.Resource).Namespace(object.GetNamespace())
		live, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
		must(t, err)
		is := live.GetResourceVersion()
		if kind.Kind == "Deployment" || kind.Kind == "PodDisruptionBudget" {
			is = fmt.Sprint("generation ", live.GetGeneration())
		}
		found[kind.Kind+" "+object.GetName()] = is
	}
	return found
}

// Installing what is installed changes no object, and restarts no pod.
func TestInstallingTwiceChangesNothing(t *testing.T) {
	ctx := within(t)
	must(t, apply(ctx, shared.Cluster, shared.before, all))
	before := versions(ctx, t, shared.before)
	must(t, apply(ctx, shared.Cluster, shared.before, all))
	for name, now := range versions(ctx, t, shared.before) {
		if now != before[name] {
			t.Errorf("%s was changed: %s, before %s", name, now, before[name])
		}
	}
}

// former is the last commit before the chart, whose config/ people have installed.
const former = "e6cb9112"

// formerManifests reads config/ of a former version from the history of this repository.
func formerManifests(ctx context.Context, t *testing.T) (objects []*unstructured.Unstructured) {
	t.Helper()
	root, err := root()
	must(t, err)
	git := func(args ...string) ([]byte, error) {
		return exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
	}
	files, err := git("ls-tree", "--name-only", former, "config/")
	if err != nil {
		t.Skipf("this clone is shallow and has no commit %s: run git fetch --unshallow (%v)", former, err)
	}
	for _, file := range strings.Fields(string(files)) {
		if !strings.HasSuffix(file, ".yaml") {
			continue
		}
		text, err := git("show", former+":"+file)
		must(t, err)
		documents, err := cluster.Documents(bytes.TrimSpace(text))
		must(t, err)
		objects = append(objects, documents...)
	}
	return objects
}

// An upgrade from a former config/, after that of its definitions, keeps open events: one that was
// recorded before it, and whose PipelineRun goes on, gets its check afterwards.
func TestUpgradeKeepsOpenEvents(t *testing.T) {
	ctx := within(t)
	const upgraded = "acme/upgraded"
	old := formerManifests(ctx, t)
	now, err := manifests()
	must(t, err)
	for _, objects := range [][]*unstructured.Unstructured{old, now} {
		must(t, errors.Join(
			Configure(objects, product, "git-allowed-hosts", "127.0.0.1"),
			Configure(objects, product, "github-url", shared.Forge.URL()),
		))
	}
	// Plumbline waits for its definitions of today: only the rest is as it was.
	const definition = "CustomResourceDefinition"
	must(t, apply(ctx, shared.Cluster, now, func(kind string) bool { return kind == definition }))
	must(t, apply(ctx, shared.Cluster, old, func(kind string) bool { return kind != definition }))
	t.Cleanup(func() { shared.repair(context.WithoutCancel(ctx), t) })
	namespace := shared.Cluster.Namespace(t, "upgraded")
	url := shared.Forge.CreateRepo("acme", "upgraded", forge.RepoOptions{}).HTMLURL
	shared.Forge.Install(shared.App.ID, "acme", upgraded)
	receiver, controller, err := shared.Pair(ctx, false, nil, nil)
	t.Cleanup(func() { _ = errors.Join(receiver.Kill(), controller.Kill()) })
	must(t, err)
	_, err = shared.Serve(ctx, namespace, "app", pacv1alpha1.RepositorySpec{URL: url})
	must(t, err)
	must(t, shared.Claimed(ctx, url))

	sha := shared.Forge.Commit(upgraded, "main",
		forge.Change{Files: map[string]string{".tekton/build.yaml": heldPipeline}, Message: "open"})
	push := shared.Forge.PushDelivery(forge.PushEvent{Repo: upgraded, Ref: "refs/heads/main"})
	if status, body, err := shared.Forge.Deliver(ctx, receiver.URL, push); err != nil || status != http.StatusAccepted {
		t.Fatalf("the delivery was answered %d %s, %v", status, body, err)
	}
	check := func(status string) func() error {
		return func() error {
			c, _ := shared.Forge.Current(upgraded, sha, "Pipelines as Code CI / build")
			if c.Status != status || status == "completed" && c.Conclusion != "success" {
				return fmt.Errorf("the check is %q %q: %s", c.Status, c.Conclusion, c.Title)
			}
			return nil
		}
	}
	eventually(ctx, t, "the run goes on", check("in_progress"))
	must(t, errors.Join(receiver.Kill(), controller.Kill()))

	must(t, apply(ctx, shared.Cluster, now, all))
	runs, err := shared.Tekton.TektonV1().PipelineRuns(namespace).List(ctx, metav1.ListOptions{})
	must(t, err)
	if len(runs.Items) != 1 {
		t.Fatalf("%d PipelineRuns, want one", len(runs.Items))
	}
	must(t, shared.Cluster.Release(ctx, namespace, runs.Items[0].Name))
	receiver, controller, err = shared.Pair(ctx, false, nil, nil)
	must(t, err)
	eventually(ctx, t, "the check is completed", check("completed"))
	eventually(ctx, t, "the event is settled", func() error {
		events, err := shared.Plumbline.PlumblineV1alpha1().GitEvents(product).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Spec.SHA == sha && event.Settled() {
				return nil
			}
		}
		return errors.New("it is open")
	})
	status, body, err := shared.Forge.Deliver(ctx, receiver.URL, push)
	if err != nil || status != http.StatusAccepted || !strings.Contains(string(body), "already") {
		t.Errorf("a redelivery was answered %d %s, %v; want that it is already recorded", status, body, err)
	}
}
