// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plumbline-ci/plumbline/pkg/receiver"
)

const (
	module = "github.com/plumbline-ci/plumbline"
	// propagation is how long an endpoint may outlive its pod in some kube-proxy (H3).
	propagation = 15 * time.Second
	// longestReconcile is reconcileDeadline of pkg/reconciler/gitevent.
	longestReconcile = 50 * time.Second
)

// The defect this guards against: two Deployments whose pods one Service takes for its own.
func TestEachServiceSelectsThePodsOfOneDeployment(t *testing.T) {
	all := read(t)
	if len(all.services) == 0 {
		t.Fatal("no Service")
	}
	for _, service := range all.services {
		if len(service.Spec.Selector) == 0 || service.Spec.Selector["pod-template-hash"] != "" {
			t.Errorf("Service %s: selector %v", service.Name, service.Spec.Selector)
		}
		var selected []appsv1.Deployment
		for _, deployment := range all.deployments {
			if labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(deployment.Spec.Template.Labels)) {
				selected = append(selected, deployment)
			}
		}
		if len(selected) != 1 {
			t.Errorf("Service %s selects the pods of %d Deployments, want one", service.Name, len(selected))
			continue
		}
		for _, port := range service.Spec.Ports {
			if !hasPort(selected[0].Spec.Template.Spec.Containers[0], port.TargetPort) {
				t.Errorf("Service %s: no container port %s in Deployment %s", service.Name, port.TargetPort.String(),
					selected[0].Name)
			}
		}
	}
}

// Services and probes name ports. A port has the number at which the process listens.
func TestNamedPortsAreThoseOfTheArguments(t *testing.T) {
	named := map[string]string{"-port": "http", "-health-port": "health", "-metrics-port": "metrics"}
	checked := 0
	for _, deployment := range read(t).deployments {
		container := deployment.Spec.Template.Spec.Containers[0]
		for _, arg := range container.Args {
			flag, number, _ := strings.Cut(arg, "=")
			if named[flag] == "" {
				continue
			}
			checked++
			if !slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool {
				return p.Name == named[flag] && strconv.Itoa(int(p.ContainerPort)) == number
			}) {
				t.Errorf("Deployment %s: the port %s is not the %s of %s", deployment.Name, named[flag], number, arg)
			}
		}
	}
	if checked != 3 {
		t.Errorf("%d arguments with ports, want 3", checked)
	}
}

func hasPort(container corev1.Container, target intstr.IntOrString) bool {
	return slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool {
		return target.Type == intstr.String && p.Name == target.StrVal
	})
}

func TestDeploymentsAreHighlyAvailable(t *testing.T) {
	all := read(t)
	if len(all.deployments) != 2 {
		t.Fatalf("%d Deployments, want receiver and controller", len(all.deployments))
	}
	for _, deployment := range all.deployments {
		t.Run(deployment.Name, func(t *testing.T) {
			if deployment.Spec.Replicas == nil || *deployment.Spec.Replicas < 2 {
				t.Error("fewer than two replicas")
			}
			rolling := deployment.Spec.Strategy.RollingUpdate
			if rolling == nil || rolling.MaxUnavailable == nil || rolling.MaxUnavailable.IntVal != 0 ||
				rolling.MaxUnavailable.StrVal != "" {
				t.Error("maxUnavailable is not 0")
			}
			pod := deployment.Spec.Template
			if !selectsExactly(deployment.Spec.Selector, pod.Labels) {
				t.Error("the selector is not the pods' own name")
			}
			if len(pod.Spec.TopologySpreadConstraints) == 0 ||
				!selectsExactly(pod.Spec.TopologySpreadConstraints[0].LabelSelector, pod.Labels) {
				t.Error("the pods are not spread")
			}
			budgets := 0
			for _, budget := range all.budgets {
				if selectsExactly(budget.Spec.Selector, pod.Labels) && budget.Spec.MinAvailable != nil &&
					budget.Spec.MinAvailable.IntVal == 1 {
					budgets++
				}
			}
			if budgets != 1 {
				t.Errorf("%d PodDisruptionBudgets, want one", budgets)
			}
			checkGrace(t, deployment)
		})
	}
}

func selectsExactly(selector *metav1.LabelSelector, pod map[string]string) bool {
	const name = "app.kubernetes.io/name"
	return selector != nil && len(selector.MatchLabels) == 1 && selector.MatchLabels[name] == pod[name] && pod[name] != ""
}

func checkGrace(t *testing.T, deployment appsv1.Deployment) {
	t.Helper()
	pod := deployment.Spec.Template.Spec
	lifecycle := pod.Containers[0].Lifecycle
	if lifecycle == nil || lifecycle.PreStop == nil || lifecycle.PreStop.Sleep == nil ||
		pod.TerminationGracePeriodSeconds == nil {
		t.Fatal("no preStop sleep or no grace period")
	}
	sleep := time.Duration(lifecycle.PreStop.Sleep.Seconds) * time.Second
	if sleep <= propagation {
		t.Errorf("preStop sleeps %v, want more than the %v an endpoint takes to go", sleep, propagation)
	}
	need := map[string]time.Duration{
		"plumbline-receiver":   sleep + drainWait(t, pod.Containers[0].Args) + receiver.ShutdownWait,
		"plumbline-controller": sleep + longestReconcile,
	}[deployment.Name]
	if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; need == 0 || grace <= need {
		t.Errorf("grace period %v, want more than the %v that preStop and drain take", grace, need)
	}
}

// drainWait is the value of -drain-wait, zero when there is none.
func drainWait(t *testing.T, args []string) (wait time.Duration) {
	t.Helper()
	for _, arg := range args {
		if value, is := strings.CutPrefix(arg, "-drain-wait="); is {
			var err error
			if wait, err = time.ParseDuration(value); err != nil {
				t.Fatal(err)
			}
		}
	}
	return wait
}

func TestContainersAreProbedLimitedAndRestricted(t *testing.T) {
	for _, deployment := range read(t).deployments {
		t.Run(deployment.Name, func(t *testing.T) {
			pod := deployment.Spec.Template.Spec
			if len(pod.Containers) != 1 || len(pod.InitContainers) != 0 {
				t.Fatalf("%d containers, want one", len(pod.Containers))
			}
			container := pod.Containers[0]
			for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
				if probe == nil || probe.HTTPGet == nil || !hasPort(container, probe.HTTPGet.Port) {
					t.Errorf("probe %+v is not an HTTP GET of one of the container's ports", probe)
				}
			}
			for _, list := range []corev1.ResourceList{container.Resources.Requests, container.Resources.Limits} {
				if list.Cpu().IsZero() || list.Memory().IsZero() {
					t.Errorf("resources %v, want CPU and memory", list)
				}
			}
			checkSecurity(t, pod)
		})
	}
}

// checkSecurity requires what the Pod Security Standard "restricted" does not, which
// TestPodsAreAdmittedAsRestricted of test/installation asks the API server about: nothing is
// written to disk, and the pod names no user. The images have a numeric one. OpenShift chooses
// another one for each namespace, and refuses a pod that names its own.
func checkSecurity(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	s, c := pod.SecurityContext, pod.Containers[0].SecurityContext
	if s == nil || c == nil {
		t.Fatal("no security context")
	}
	if s.RunAsUser != nil || s.RunAsGroup != nil || c.RunAsUser != nil || c.RunAsGroup != nil {
		t.Error("names a user or group")
	}
	if c.ReadOnlyRootFilesystem == nil || !*c.ReadOnlyRootFilesystem || len(pod.Volumes) != 0 {
		t.Error("may write to its root file system, or mounts volumes")
	}
}

func TestImagesAreBuiltFromOurCommands(t *testing.T) {
	for _, deployment := range read(t).deployments {
		image := deployment.Spec.Template.Spec.Containers[0].Image
		command, ok := strings.CutPrefix(image, "ko://"+module+"/")
		if !ok {
			t.Errorf("Deployment %s: image %q, want a command of this module", deployment.Name, image)
			continue
		}
		if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(command), "main.go")); err != nil {
			t.Errorf("Deployment %s: %v", deployment.Name, err)
		}
	}
}
