// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// tool is the built plumb with a kubeconfig.
type tool struct{ path, kubeconfig string }

// run returns the exit code and both streams.
func (p tool) run(ctx context.Context, args ...string) (code int, shown string, err error) {
	out, err := exec.CommandContext(ctx, p.path, append(args, "--kubeconfig="+p.kubeconfig)...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), string(out), nil
	}
	return 0, string(out), err
}

// available makes the Deployments of an installation look as if their pods ran.
func (i *Installation) available(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, name := range deployments() {
		deployment, err := i.Kube.AppsV1().Deployments(i.Namespace).Get(ctx, name, metav1.GetOptions{})
		must(t, err)
		deployment.Status = appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
		_, err = i.Kube.AppsV1().Deployments(i.Namespace).UpdateStatus(ctx, deployment, metav1.UpdateOptions{})
		must(t, err)
	}
}

func newTool(t *testing.T) tool {
	t.Helper()
	dir := t.TempDir()
	must(t, Compile(t.Context(), dir, "./cmd/plumb"))
	return tool{filepath.Join(dir, "plumb"), shared.Cluster.KubeconfigPath()}
}

// plumb doctor and plumb uninstall find on a real API server what they look for, with the rights of
// an administrator and with none.
func TestPlumb(t *testing.T) {
	plumb := newTool(t)
	t.Run("doctor passes a complete installation", func(t *testing.T) {
		ctx := within(t)
		shared.runPods(ctx, t)
		shared.available(ctx, t)
		eventually(ctx, t, "every check passes", func() error {
			code, shown, err := plumb.run(ctx, "doctor")
			if code != 0 || err != nil || strings.Count(shown, "passed") < 14 {
				return fmt.Errorf("exit %d, %w: %s", code, err, shown)
			}
			return nil
		})
	})
	t.Run("doctor names the rights that an account lacks", func(t *testing.T) { doctorWithoutRights(t, plumb) })
	t.Run("bootstrap registers an App and creates the first Repository", func(t *testing.T) { bootstrapGitHub(t, plumb) })
	t.Run("migrate moves a namespace and back, whenever it is killed", func(t *testing.T) { migrates(t, plumb) })
	t.Run("uninstall closes the checks first", func(t *testing.T) { uninstallClosesChecks(t, plumb) })
}

func doctorWithoutRights(t *testing.T, plumb tool) {
	ctx := within(t)
	namespace := shared.Cluster.Namespace(t, "without-rights")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "without-rights"}}
	_, err := shared.Kube.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{})
	must(t, err)
	token, err := shared.Cluster.Token(ctx, namespace, "without-rights")
	must(t, err)
	plumb.kubeconfig = filepath.Join(t.TempDir(), "without-rights")
	must(t, shared.Cluster.WriteKubeconfig(plumb.kubeconfig, token))
	code, shown, err := plumb.run(ctx, "doctor")
	if code != 2 || err != nil {
		t.Errorf("exit %d, %v", code, err)
	}
	for _, part := range []string{
		"get secrets in namespace plumbline", "get deployments.apps in namespace plumbline", "get services in namespace plumbline",
		"create subjectaccessreviews.authorization.k8s.io in all namespaces", "get configmaps in namespace plumbline",
		"list deployments.apps in all namespaces", "get validatingwebhookconfigurations.admissionregistration.k8s.io in all namespaces",
	} {
		if !strings.Contains(shown, "lacks the right to "+part) {
			t.Errorf("it does not name the right to %s:\n%s", part, shown)
		}
	}
}

const heldPipeline = `apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: build
  annotations:
    pipelinesascode.tekton.dev/on-event: push
    pipelinesascode.tekton.dev/on-target-branch: main
    test.plumbline.dev/hold: "true"
spec: {pipelineSpec: {tasks: [{name: t, taskSpec: {steps: [{name: s, image: busybox, script: exit 0}]}}]}}
`

// A second installation has an event whose run does not end. It is uninstalled next to the first
// one, which keeps what both share.
func uninstallClosesChecks(t *testing.T, plumb tool) {
	ctx := within(t)
	app := shared.Forge.CreateApp(8, "second", "", "webhook-secret-of-the-second")
	i, err := New(ctx, Options{Cluster: shared.Cluster, Forge: shared.Forge, App: app, Programs: shared.programs})
	must(t, err)
	team := shared.Cluster.Namespace(t, "team")
	t.Cleanup(func() { _ = i.Close(team) })
	receiver, _, err := i.Pair(ctx, false, nil, nil)
	must(t, err)
	repo := shared.Forge.CreateRepo("departing", "uninstalled", forge.RepoOptions{})
	shared.Forge.Install(app.ID, "departing") // the first App has all of acme
	_, err = i.Serve(ctx, team, "app", pacv1alpha1.RepositorySpec{URL: repo.HTMLURL})
	must(t, err)
	eventually(ctx, t, "the Repository is served", func() error { return i.Claimed(ctx, repo.HTMLURL) })
	sha := shared.Forge.Commit("departing/uninstalled", "main",
		forge.Change{Files: map[string]string{".tekton/build.yaml": heldPipeline}, Message: "x"})
	push := shared.Forge.PushDelivery(forge.PushEvent{Repo: "departing/uninstalled", Ref: "refs/heads/main"})
	eventually(ctx, t, "the push is accepted", func() error {
		status, body, err := shared.Forge.Deliver(ctx, receiver.URL, push)
		if status != http.StatusAccepted {
			return fmt.Errorf("answered %d %s, %w", status, body, err)
		}
		return nil
	})
	const check = "Pipelines as Code CI / build"
	eventually(ctx, t, "the check is in progress", func() error { return checkIs(sha, check, "in_progress", "") })
	i.available(ctx, t)

	args := []string{"uninstall", "--system-namespace=" + i.Namespace}
	code, shown, err := plumb.run(ctx, args...)
	if code != 0 || err != nil || !strings.Contains(shown, check) || !strings.Contains(shown, "Nothing was changed") ||
		strings.Contains(shown, "customresourcedefinitions") {
		t.Fatalf("exit %d, %v: %s", code, err, shown)
	}
	code, shown, err = plumb.run(ctx, append(args, "--yes")...)
	if code != 2 || err != nil || !strings.Contains(shown, "add --close-checks") {
		t.Fatalf("exit %d, %v: %s", code, err, shown)
	}
	code, shown, err = plumb.run(ctx, append(args, "--yes", "--close-checks", "--timeout=1m")...)
	if code != 0 || err != nil || !strings.Contains(shown, "All checks that Plumbline can close are closed.") {
		t.Fatalf("exit %d, %v: %s", code, err, shown)
	}
	must(t, checkIs(sha, check, "completed", "cancelled"))
	for _, name := range deployments() {
		_, err := i.Kube.AppsV1().Deployments(i.Namespace).Get(ctx, name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("Deployment %s is still there: %v", name, err)
		}
		if _, err := shared.Kube.AppsV1().Deployments(product).Get(ctx, name, metav1.GetOptions{}); err != nil {
			t.Errorf("Deployment %s of the other installation: %v", name, err)
		}
	}
	if _, err := i.Kube.CoreV1().Secrets(i.Namespace).Get(ctx, appSecret, metav1.GetOptions{}); err != nil {
		t.Errorf("the App's Secret: %v", err)
	}
	_, err = i.Plumbline.PipelinesascodeV1alpha1().Repositories(team).Get(ctx, "app", metav1.GetOptions{})
	if err != nil {
		t.Errorf("the Repository: %v", err)
	}
}

// checkIs returns nil if the newest check of that name has this state.
func checkIs(sha, name, status, conclusion string) error {
	last, _ := shared.Forge.Current("departing/uninstalled", sha, name)
	if last.Status != status || last.Conclusion != conclusion {
		return fmt.Errorf("the check is %s %s: %s", last.Status, last.Conclusion, last.Title)
	}
	return nil
}
