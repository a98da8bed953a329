// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/testcache"
)

// helm is the real command, as docs/install.md types it.
type helm struct {
	*Installation
	program, chart, values string
	deployed               []*Process
}

// newHelm builds Helm, whose values name the Git service of the test.
func newHelm(ctx context.Context, t *testing.T, i *Installation, programs Programs) *helm {
	t.Helper()
	root, err := root()
	must(t, err)
	module, dir := filepath.Join(root, "hack", "tools", "chart"), t.TempDir()
	h := &helm{
		Installation: i,
		program:      filepath.Join(dir, "helm"), values: filepath.Join(dir, "values.yaml"),
		chart: filepath.Join(root, "charts", "plumbline"),
	}
	h.programs = programs
	must(t, testcache.Files(h.chart, module, filepath.Join(root, "config")))
	build := exec.CommandContext(ctx, "go", "build", "-C", module, "-ldflags=-s -w", "-o", h.program, "helm.sh/helm/v4/cmd/helm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building Helm: %v\n%s", err, out)
	}
	h.set(t, "")
	t.Cleanup(func() { must(t, h.stop()) })
	return h
}

// set writes the values, with more settings.
func (h *helm) set(t *testing.T, settings string) {
	t.Helper()
	text := fmt.Sprintf("settings:\n  git-allowed-hosts: 127.0.0.1\n  github-url: %s\n%s", h.Forge.URL(), settings)
	must(t, os.WriteFile(h.values, []byte(text), 0o600))
}

// run is one command line of Helm, without `-n plumbline`.
func (h *helm) run(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, h.program, append(args, "-n", product)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+h.Cluster.KubeconfigPath(), "HELM_CACHE_HOME="+filepath.Dir(h.values))
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// start runs the processes of the release's Deployments, as the kubelet would, and returns the
// receiver.
func (h *helm) start(ctx context.Context, t *testing.T) *Process {
	t.Helper()
	text, err := h.run(ctx, "get", "manifest", product)
	must(t, err)
	objects, err := cluster.Documents([]byte(text))
	must(t, err)
	started := make(chan error, 2)
	for component, path := range map[string]string{"controller": h.programs.Controller, "receiver": h.programs.Receiver} {
		p, err := Deployed(ctx, h.Cluster, objects, component, path)
		must(t, err)
		h.deployed = append(h.deployed, p)
		go func() { started <- p.Start(ctx) }()
	}
	must(t, errors.Join(<-started, <-started))
	return h.deployed[slices.IndexFunc(h.deployed, func(p *Process) bool { return p.Name() == "plumbline-receiver" })]
}

// stop kills the processes.
func (h *helm) stop() (err error) {
	for _, p := range h.deployed {
		err = errors.Join(err, p.Kill())
	}
	h.deployed = nil
	return err
}

// openEvent is an event whose run goes on until it is released.
type openEvent struct {
	namespace, repo, sha string
	push                 forge.Delivery
}

// open makes a Repository and an event whose run goes on.
func (h *helm) open(ctx context.Context, t *testing.T, name string, receiver *Process) openEvent {
	t.Helper()
	repo := "acme/" + name
	url := h.Forge.CreateRepo("acme", name, forge.RepoOptions{}).HTMLURL
	h.Forge.Install(h.App.ID, "acme", repo)
	namespace := h.Cluster.Namespace(t, name)
	_, err := h.Serve(ctx, namespace, "app", pacv1alpha1.RepositorySpec{URL: url})
	must(t, err)
	must(t, h.Claimed(ctx, url))
	change := forge.Change{Files: map[string]string{".tekton/build.yaml": heldPipeline}, Message: "open"}
	e := openEvent{namespace: namespace, repo: repo, sha: h.Forge.Commit(repo, "main", change)}
	e.push = h.Forge.PushDelivery(forge.PushEvent{Repo: repo, Ref: "refs/heads/main"})
	eventually(ctx, t, "the push is accepted", func() error {
		status, body, err := h.Forge.Deliver(ctx, receiver.URL, e.push)
		if err == nil && status != http.StatusAccepted {
			err = fmt.Errorf("answered %d %s", status, body)
		}
		return err
	})
	eventually(ctx, t, "the run goes on", h.check(e, "in_progress"))
	return e
}

func (h *helm) check(e openEvent, status string) func() error {
	return func() error {
		c, _ := h.Forge.Current(e.repo, e.sha, "Pipelines as Code CI / build")
		if c.Status != status || status == "completed" && c.Conclusion != "success" {
			return fmt.Errorf("the check is %q %q: %s", c.Status, c.Conclusion, c.Title)
		}
		return nil
	}
}

// finish lets the run end, and requires its check, and that a redelivery starts nothing.
func (h *helm) finish(ctx context.Context, t *testing.T, e openEvent, receiver *Process) {
	t.Helper()
	runs := h.Tekton.TektonV1().PipelineRuns(e.namespace)
	list, err := runs.List(ctx, metav1.ListOptions{})
	must(t, err)
	if len(list.Items) != 1 {
		t.Fatalf("%d PipelineRuns, want one", len(list.Items))
	}
	must(t, h.Cluster.Release(ctx, e.namespace, list.Items[0].Name))
	eventually(ctx, t, "the check is completed", h.check(e, "completed"))
	status, body, err := h.Forge.Deliver(ctx, receiver.URL, e.push)
	if err != nil || status != http.StatusAccepted || !strings.Contains(string(body), "already") {
		t.Errorf("a redelivery was answered %d %s, %v; want that it is already recorded", status, body, err)
	}
}

// What docs/install.md says of Helm, on an empty cluster: install, a first push, an upgrade while a
// run goes on, and uninstall, which keeps Repositories and GitEvents.
func TestHelmInstallsUpgradesAndUninstalls(t *testing.T) {
	if testing.Short() {
		t.Skip("builds Helm, which takes minutes the first time: make test-all does")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	c, err := cluster.Start(ctx, cluster.Options{Dir: filepath.Join(t.TempDir(), "cluster")})
	must(t, err)
	defer c.Stop()
	git := forge.New(forge.Options{})
	must(t, git.Start())
	defer func() { _ = git.Close() }()
	app := git.CreateApp(11, "plumbline", "", "webhook-secret-of-helm")
	i, err := Adopt(c.RESTConfig(), Options{Namespace: product, Cluster: c, Forge: git, App: app})
	must(t, err)
	h := newHelm(ctx, t, i, shared.programs)

	notes, err := h.run(ctx, "install", product, h.chart, "--create-namespace", "-f", h.values)
	must(t, err)
	if !strings.Contains(notes, "kubectl -n plumbline create secret generic "+appSecret) {
		t.Errorf("the notes do not say how to store the App's credentials:\n%s", notes)
	}
	must(t, h.StoreApp(ctx))
	event := h.open(ctx, t, "helm", h.start(ctx, t))

	h.set(t, "  tekton-dashboard-url: https://tekton.example.com\ncontroller: {extraArgs: [-workers=3]}\n")
	_, err = h.run(ctx, "upgrade", product, h.chart, "-f", h.values)
	must(t, err)
	settings, err := h.Kube.CoreV1().ConfigMaps(product).Get(ctx, product, metav1.GetOptions{})
	must(t, err)
	if got := settings.Data["tekton-dashboard-url"]; got != "https://tekton.example.com" {
		t.Errorf("after the upgrade tekton-dashboard-url is %q", got)
	}
	must(t, h.stop())
	h.finish(ctx, t, event, h.start(ctx, t))

	_, err = h.run(ctx, "uninstall", product)
	must(t, err)
	must(t, h.stop())
	h.kept(ctx, t, event)
}

// kept requires that Helm's uninstall has left what people cannot make again, and nothing that
// runs.
func (h *helm) kept(ctx context.Context, t *testing.T, event openEvent) {
	t.Helper()
	_, err := h.Plumbline.PipelinesascodeV1alpha1().Repositories(event.namespace).Get(ctx, "app", metav1.GetOptions{})
	must(t, err)
	events, err := h.Plumbline.PlumblineV1alpha1().GitEvents(product).List(ctx, metav1.ListOptions{})
	must(t, err)
	if len(events.Items) != 1 {
		t.Errorf("%d GitEvents are left, want the one of the push", len(events.Items))
	}
	_, err = h.Kube.CoreV1().Secrets(product).Get(ctx, appSecret, metav1.GetOptions{})
	must(t, err)
	for _, name := range deployments() {
		if _, err := h.Kube.AppsV1().Deployments(product).Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("Deployment %s is left: %v", name, err)
		}
	}
}

// Helm adopts what `kubectl apply -f config/` installed, while a run goes on. From then on the
// preflight's remedy is `helm upgrade`, which works.
func TestHelmTakesOwnership(t *testing.T) {
	if testing.Short() {
		t.Skip("builds Helm, which takes minutes the first time: make test-all does")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	h := newHelm(ctx, t, shared.Installation, shared.programs)
	t.Cleanup(func() { shared.repair(context.WithoutCancel(ctx), t) })
	receiver, controller, err := shared.Pair(ctx, false, nil, nil)
	t.Cleanup(func() { _ = errors.Join(receiver.Kill(), controller.Kill()) })
	must(t, err)
	event := h.open(ctx, t, "adopted", receiver)
	before, err := h.Kube.AppsV1().Deployments(product).Get(ctx, "plumbline-controller", metav1.GetOptions{})
	must(t, err)
	must(t, errors.Join(receiver.Kill(), controller.Kill()))

	_, err = h.run(ctx, "install", product, h.chart, "-f", h.values)
	if err == nil || !strings.Contains(err.Error(), "cannot be imported into the current release") {
		t.Fatalf("without --take-ownership: %v", err)
	}
	_, err = h.run(ctx, "install", product, h.chart, "--take-ownership", "--force-conflicts", "-f", h.values)
	must(t, err)
	t.Cleanup(func() {
		_, err := h.run(context.WithoutCancel(ctx), "uninstall", product)
		must(t, err)
	})
	after, err := h.Kube.AppsV1().Deployments(product).Get(ctx, "plumbline-controller", metav1.GetOptions{})
	must(t, err)
	if after.UID != before.UID {
		t.Error("the Deployment was made again")
	}
	h.finish(ctx, t, event, h.start(ctx, t))

	const service = "plumbline-controller-metrics"
	must(t, h.Kube.CoreV1().Services(product).Delete(ctx, service, metav1.DeleteOptions{}))
	_, out, err := shared.controllerFinds(ctx)
	must(t, err)
	if remedy := "helm upgrade plumbline <chart of this version> -n plumbline -f values.yaml"; !strings.Contains(out,
		service+" does not exist. To fix it: "+remedy) {
		t.Errorf("the preflight says\n%s, want %s", out, remedy)
	}
	_, err = h.run(ctx, "upgrade", product, h.chart, "-f", h.values)
	must(t, err)
	_, err = h.Kube.CoreV1().Services(product).Get(ctx, service, metav1.GetOptions{})
	must(t, err)
}
