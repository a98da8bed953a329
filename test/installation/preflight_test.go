// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// nothing is the output of a preflight without a finding.
const nothing = "Nothing is wrong with the installation in namespace plumbline.\n"

// preflight runs a component's binary with -preflight, as its ServiceAccount.
func (s stage) preflight(ctx context.Context, component, path string, flags ...string) (code int, out string,
	err error) {
	token, err := s.Cluster.Token(ctx, product, product+"-"+component)
	if err != nil {
		return 0, "", err
	}
	kubeconfig := filepath.Join(s.Cluster.Dir(), "preflight-"+component+".kubeconfig")
	if err := s.Cluster.WriteKubeconfig(kubeconfig, token); err != nil {
		return 0, "", err
	}
	var printed bytes.Buffer
	command := exec.CommandContext(ctx, path, append([]string{"-preflight", "-kubeconfig=" + kubeconfig}, flags...)...)
	command.Env = []string{"SYSTEM_NAMESPACE=" + product}
	command.Stdout = &printed
	err = command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), printed.String(), nil
	}
	return 0, printed.String(), err
}

func (s stage) controllerFinds(ctx context.Context, flags ...string) (int, string, error) {
	return s.preflight(ctx, "controller", s.programs.Controller, flags...)
}

// runPods makes the pods of the Deployments, which no controller of this cluster does: a
// ReplicaSet of each, and a pod of it.
func (s stage) runPods(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, name := range deployments() {
		s.runPod(ctx, t, name, podOf(t, name, ""))
		t.Cleanup(func() { s.removePod(context.WithoutCancel(ctx), t, name) })
	}
}

// hash is the pod-template-hash of every pod here.
const hash = "5d8f7c9b6"

// runPod makes a pod as a Deployment of that name would.
func (s stage) runPod(ctx context.Context, t *testing.T, deployment string, pod *corev1.Pod) {
	t.Helper()
	pod.Labels["pod-template-hash"] = hash
	set, err := s.Kube.AppsV1().ReplicaSets(product).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: deployment + "-" + hash},
		Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	pod.Name = set.Name + "-x7k2p"
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")),
	}
	_, err = s.Kube.CoreV1().Pods(product).Create(ctx, pod, metav1.CreateOptions{})
	must(t, err)
}

func (s stage) removePod(ctx context.Context, t *testing.T, deployment string) {
	t.Helper()
	name := deployment + "-" + hash
	must(t, s.Kube.AppsV1().ReplicaSets(product).Delete(ctx, name, metav1.DeleteOptions{}))
	must(t, s.Kube.CoreV1().Pods(product).Delete(ctx, name+"-x7k2p", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
}

// condition is one real problem of an installation.
type condition struct {
	name  string
	wreck func(context.Context, *testing.T)
	// undo reverts what installing config/ again does not; it may be nil.
	undo func(context.Context, *testing.T)
	// says are parts of the finding: the object, what is wrong, the remedy.
	says []string
	// receiver: the receiver's own preflight is asked.
	receiver bool
}

// A correct installation has no finding, with the rights of config/ and no more. For each problem
// the preflight ends with 1 and names the object and the remedy. After the repair there is no
// finding.
func TestPreflightReportsProblems(t *testing.T) {
	ctx := within(t)
	shared.runPods(ctx, t)
	find := func(component string) (int, string, error) {
		if component == "receiver" {
			return shared.preflight(ctx, component, shared.programs.Receiver)
		}
		return shared.controllerFinds(ctx)
	}
	healthy := func() error {
		for _, component := range []string{"controller", "receiver"} {
			if code, out, err := find(component); code != 0 || out != nothing || err != nil {
				return fmt.Errorf("the %s's preflight ends with %d, %w, and says: %s", component, code, err, out)
			}
		}
		return nil
	}
	eventually(ctx, t, "nothing is wrong", healthy)
	conditions := append(append(ownConditions(), rightConditions()...), foreignConditions()...)
	for _, test := range conditions {
		t.Run(test.name, func(t *testing.T) {
			test.wreck(ctx, t)
			component := "controller"
			if test.receiver {
				component = "receiver"
			}
			eventually(ctx, t, "it is found", func() error {
				code, out, err := find(component)
				if err != nil || code != 1 {
					return fmt.Errorf("the preflight ends with %d, %w, and says: %s", code, err, out)
				}
				for _, part := range test.says {
					if !strings.Contains(out, part) {
						return fmt.Errorf("it does not say %q: %s", part, out)
					}
				}
				if strings.Contains(out, shared.App.WebhookSecret) || strings.Contains(out, "PRIVATE KEY") {
					t.Fatal("it prints a secret")
				}
				return nil
			})
			if test.undo != nil {
				test.undo(ctx, t)
			}
			shared.repair(ctx, t)
			eventually(ctx, t, "nothing is wrong any more", healthy)
		})
	}
}

// repair installs config/ again and removes what is not of it.
func (s stage) repair(ctx context.Context, t *testing.T) {
	t.Helper()
	must(t, apply(ctx, s.Cluster, s.before, all))
	if err := s.Kube.CoreV1().Secrets(product).Delete(ctx, appSecret, metav1.DeleteOptions{}); err != nil {
		t.Log(err)
	}
	must(t, errors.Join(s.StoreApp(ctx), s.shard(ctx)))
}

// An API server that is down is reported in one line, and the controller does not exit: it waits
// and then starts.
func TestPreflightWithoutTheAPIServer(t *testing.T) {
	ctx := within(t)
	token, err := shared.Cluster.Token(ctx, product, "plumbline-controller") // while there is somebody to ask
	must(t, err)
	kubeconfig := filepath.Join(shared.Cluster.Dir(), "waiting.kubeconfig")
	must(t, shared.Cluster.WriteKubeconfig(kubeconfig, token))
	p, err := shared.Controller(ctx, false)
	must(t, err)
	must(t, shared.Cluster.Part(cluster.APIServer).Kill())
	begun := make(chan error, 1)
	go func() { begun <- p.Start(ctx) }()
	t.Cleanup(func() { _ = p.Kill() })
	command := exec.CommandContext(ctx, shared.programs.Controller, "-preflight", "-kubeconfig="+kubeconfig)
	command.Env = []string{"SYSTEM_NAMESPACE=" + product}
	out, err := command.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("without the API server the preflight ends with %v, want exit code 1", err)
	}
	if bytes.Count(out, []byte("\n")) != 1 || !strings.Contains(string(out), "Kubernetes could not be checked") {
		t.Errorf("without the API server the preflight says %s; want one line that says so", out)
	}
	eventually(ctx, t, "the controller waits", func() error { return printed(p, "Waiting: ") })
	must(t, shared.Cluster.Part(cluster.APIServer).Start(ctx))
	if err := <-begun; err != nil {
		t.Errorf("a controller that was started without the API server: %v; want it to start when it is back", err)
	}
}
