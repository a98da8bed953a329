// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

const (
	namespace  = "plumbline"
	credential = "plumbline-github-app"
)

// node stands in for kind's: it runs a process for each Deployment that the reader applies, once
// its image is one that the reader loaded, and reports it ready.
type node struct {
	installation *installation.Installation
	forge        string
	mu           sync.Mutex
	images       map[string]bool                  // that the reader loaded
	started      map[string]*installation.Process // by component
}

// startNode runs until the test ends.
func startNode(ctx context.Context, t *testing.T, s stage) *node {
	t.Helper()
	adopted, err := installation.Adopt(s.cluster.RESTConfig(),
		installation.Options{Cluster: s.cluster, Programs: s.programs, Namespace: namespace})
	must(t, err)
	n := &node{
		installation: adopted, forge: s.git.URL(),
		images: map[string]bool{}, started: map[string]*installation.Process{},
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cluster.Poll(ctx, 200*time.Millisecond, func() error {
			if err := n.sync(ctx); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				t.Logf("the node: %v", err)
			}
			return errors.New("runs until it is stopped")
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		must(t, adopted.Close())
	})
	return n
}

// sync starts what can start.
func (n *node) sync(ctx context.Context) error {
	// The pods could start before: waiting for the Secret is what their readiness comes to.
	if _, err := n.installation.Kube.CoreV1().Secrets(namespace).Get(ctx, credential, metav1.GetOptions{}); err != nil {
		return err
	}
	deployments, err := n.installation.Kube.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		component := strings.TrimPrefix(d.Name, "plumbline-")
		if image := d.Spec.Template.Spec.Containers[0].Image; !strings.Contains(image, component) || !n.has(image) {
			return fmt.Errorf("deployment %s has the image %s, which was not loaded", d.Name, image)
		}
		if err := n.run(ctx, component); err != nil {
			return err
		}
		if err := n.report(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// load stores an image in the node, as docker exec does.
func (n *node) load(image string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.images[image] = true
}

func (n *node) has(image string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.images[image]
}

// run starts a process once. Its Git service is on this machine, which only a test may call.
func (n *node) run(ctx context.Context, component string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.started[component] != nil {
		return nil
	}
	patch := fmt.Sprintf(`{"data":{"github-url":%q,"git-allowed-hosts":"127.0.0.1"}}`, n.forge)
	settings := n.installation.Kube.CoreV1().ConfigMaps(namespace)
	_, err := settings.Patch(ctx, "plumbline", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	newProcess := n.installation.Receiver
	if component == "controller" {
		newProcess = n.installation.Controller
	}
	process, err := newProcess(ctx, false)
	if err != nil {
		return err
	}
	n.started[component] = process
	return process.Start(ctx)
}

// report is what the Deployment controller writes when all pods are ready.
func (n *node) report(ctx context.Context, d *appsv1.Deployment) error {
	replicas := *d.Spec.Replicas
	if d.Status.ObservedGeneration == d.Generation && d.Status.AvailableReplicas == replicas {
		return nil
	}
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation,
		Replicas:           replicas,
		UpdatedReplicas:    replicas,
		ReadyReplicas:      replicas,
		AvailableReplicas:  replicas,
	}
	_, err := n.installation.Kube.AppsV1().Deployments(namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{})
	return err
}

// receiver is where the tunnel of step 3 leads.
func (n *node) receiver() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.started["receiver"] == nil {
		return ""
	}
	return n.started["receiver"].URL
}
