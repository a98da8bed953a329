// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
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
	n.forge = forge.New(forge.Options{Addr: forgeAddress, RefuseEarlyConclusion: true})
	if err := n.forge.Start(); err != nil {
		return "", err
	}
	if err := n.apply(ctx, plumblineManifests); err != nil {
		return "", err
	}
	app := n.forge.CreateApp(appID, "plumbline", "", "webhook-secret-of-the-node")
	_, err := n.kube.CoreV1().Secrets(plumblineNamespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "plumbline-github-app"},
		StringData: map[string]string{
			"github-application-id": strconv.Itoa(appID), "github-private-key": app.PrivateKeyPEM, "webhook.secret": app.WebhookSecret,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	seen, err := n.available(ctx, plumblineNamespace)
	if err != nil {
		return "", err
	}
	service, err := n.kube.CoreV1().Services(plumblineNamespace).Get(ctx, "plumbline-receiver", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	n.receivers = fmt.Sprintf("http://%s:%d", service.Spec.ClusterIP, service.Spec.Ports[0].Port)
	return seen, n.createRepositories(ctx)
}

func (n *node) createRepositories(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant, Labels: map[string]string{enforce: "restricted"}}}
	if _, err := n.kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	repositories := n.plumbline.PipelinesascodeV1alpha1().Repositories(tenant)
	for _, name := range []string{"app", "quiet"} {
		made := n.forge.CreateRepo("acme", name, forge.RepoOptions{})
		_, err := repositories.Create(ctx, &pacv1alpha1.Repository{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: pacv1alpha1.RepositorySpec{URL: made.HTMLURL},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	n.forge.Install(appID, "acme", busy, quiet)
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
		deployments, err := n.kube.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var want int32
		for _, d := range deployments.Items {
			want += *d.Spec.Replicas
			if s := d.Status; s.ObservedGeneration != d.Generation || s.UpdatedReplicas != *d.Spec.Replicas || s.AvailableReplicas != *d.Spec.Replicas {
				return fmt.Errorf("%s: %d of %d replicas are available, %d updated", d.Name, s.AvailableReplicas, *d.Spec.Replicas, s.UpdatedReplicas)
			}
		}
		pods, err := n.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
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
	events, failed := n.kube.CoreV1().Events(namespace).List(context.Background(), metav1.ListOptions{FieldSelector: "type=Warning"})
	if failed != nil {
		return failed
	}
	for _, event := range events.Items {
		err = errors.Join(err, fmt.Errorf("%s %s: %s", event.InvolvedObject.Name, event.Reason, event.Message))
	}
	return err
}
