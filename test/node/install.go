// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

const (
	tektonNamespace    = "tekton-pipelines"
	plumblineNamespace = "plumbline"
	tenant             = "team-a"
	enforce            = "pod-security.kubernetes.io/enforce"
	// busy is the repository of pipelines. Pushes to quiet start nothing.
	busy, quiet = "acme/app", "acme/quiet"
	appID       = 7
	mainBranch  = "main"
)

func (n *node) apply(ctx context.Context, file string) error {
	manifests, err := os.ReadFile(n.file(file))
	if err != nil {
		return err
	}
	return cluster.ApplyTo(ctx, n.config, manifests)
}

// installTekton applies Tekton's own manifests.
func (n *node) installTekton(ctx context.Context) (string, error) {
	if err := n.apply(ctx, tektonManifests); err != nil {
		return "", err
	}
	return n.available(ctx, tektonNamespace)
}

// installPlumbline follows the installation's documentation: manifests, the App's Secret, a
// Repository.
func (n *node) installPlumbline(ctx context.Context) (string, error) {
	certificate, err := tls.LoadX509KeyPair(n.file("node.crt"), n.file("node.key"))
	if err != nil {
		return "", err
	}
	n.Forge = forge.New(forge.Options{Addr: forgeAddress, RefuseEarlyConclusion: true})
	if err := n.Forge.StartTLS(certificate); err != nil {
		return "", err
	}
	if err := n.createNamespace(ctx, plumblineNamespace); err != nil {
		return "", err
	}
	if err := n.trustForge(ctx); err != nil {
		return "", err
	}
	if err := n.apply(ctx, plumblineManifests); err != nil {
		return "", err
	}
	n.App = n.Forge.CreateApp(appID, "plumbline", "", "webhook-secret-of-the-node")
	if err := n.StoreApp(ctx); err != nil {
		return "", err
	}
	seen, err := n.available(ctx, plumblineNamespace)
	if err != nil {
		return "", err
	}
	service, err := n.Kube.CoreV1().Services(plumblineNamespace).Get(ctx, "plumbline-receiver", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	n.receivers = fmt.Sprintf("http://%s:%d", service.Spec.ClusterIP, service.Spec.Ports[0].Port)
	// kube-proxy learns of Ready pods a moment after the API server.
	reach := func() error { return installation.Answers(ctx, n.receivers+"/ready") }
	if err := until(ctx, "the Service reaches a receiver", reach); err != nil {
		return "", err
	}
	return seen, n.createRepositories(ctx)
}

// createNamespace creates a namespace that enforces Pod Security restricted.
func (n *node) createNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{enforce: "restricted"}},
	}
	_, err := n.Kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	return err
}

// trustForge stores the certificate authority of the Git service, as for one in a private network.
func (n *node) trustForge(ctx context.Context) error {
	certificate, err := os.ReadFile(n.file("node.crt"))
	if err != nil {
		return err
	}
	_, err = n.Kube.CoreV1().ConfigMaps(plumblineNamespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: authorities}, Data: map[string]string{"git.crt": string(certificate)},
	}, metav1.CreateOptions{})
	return err
}

func (n *node) createRepositories(ctx context.Context) error {
	if err := n.createNamespace(ctx, tenant); err != nil {
		return err
	}
	repositories := n.Plumbline.PipelinesascodeV1alpha1().Repositories(tenant)
	for _, name := range []string{"app", "quiet"} {
		made := n.Forge.CreateRepo("acme", name, forge.RepoOptions{})
		if _, err := n.Serve(ctx, tenant, name, pacv1alpha1.RepositorySpec{URL: made.HTMLURL}); err != nil {
			return err
		}
	}
	n.Forge.Install(appID, "acme", busy, quiet)
	for _, name := range []string{"app", "quiet"} {
		err := until(ctx, "Repository "+name+" is Ready", func() error {
			found, err := repositories.Get(ctx, name, metav1.GetOptions{})
			if err == nil && !found.Status.GetCondition("Ready").IsTrue() {
				return errNotYet
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// available waits until all Deployments of a namespace have all replicas in their newest version,
// and no other pod.
func (n *node) available(ctx context.Context, namespace string) (seen string, err error) {
	err = until(ctx, "the Deployments of "+namespace+" are available", func() error {
		deployments, err := n.Kube.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var want int32
		for _, d := range deployments.Items {
			want += *d.Spec.Replicas
			if s := d.Status; s.ObservedGeneration != d.Generation || s.UpdatedReplicas != *d.Spec.Replicas ||
				s.AvailableReplicas != *d.Spec.Replicas {
				return fmt.Errorf("%s: %d of %d replicas are available, %d updated",
					d.Name, s.AvailableReplicas, *d.Spec.Replicas, s.UpdatedReplicas)
			}
		}
		pods, err := n.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(pods.Items) != int(want) || want == 0 {
			return fmt.Errorf("%d pods, want %d", len(pods.Items), want)
		}
		seen = fmt.Sprintf("%d of %d pods are Ready", len(pods.Items), want)
		return nil
	})
	if err != nil {
		err = errors.Join(err, n.complaints(namespace))
	}
	return seen, err
}

// complaints are the warnings that Kubernetes recorded in a namespace.
func (n *node) complaints(namespace string) (err error) {
	warnings := metav1.ListOptions{FieldSelector: "type=Warning"}
	events, failed := n.Kube.CoreV1().Events(namespace).List(context.Background(), warnings)
	if failed != nil {
		return failed
	}
	for _, event := range events.Items {
		err = errors.Join(err, fmt.Errorf("%s %s: %s", event.InvolvedObject.Name, event.Reason, event.Message))
	}
	return err
}
