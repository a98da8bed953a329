// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

const (
	// claimLimit bounds what Claimed waits for, closing what Close does.
	claimLimit = 2 * time.Minute
	closing    = 30 * time.Second
	// ReceiverAPIWait is how long a receiver waits for one answer of the API server (kubeCallBudget
	// of pkg/receiver): a 503 that took longer is the machine's.
	ReceiverAPIWait = 3 * time.Second
	// ReceiverHeaderWait is how long it waits for the headers of a request (headerTimeout there),
	// counted from the connection's begin: a connection that it cuts off after that is the
	// machine's.
	ReceiverHeaderWait = 2 * time.Second
)

// Pair starts one receiver and one controller, each with flags of its own.
func (i *Installation) Pair(
	ctx context.Context, proxied bool, ofReceiver, ofController []string,
) (receiver, controller *Process, err error) {
	if receiver, err = i.Receiver(ctx, proxied, ofReceiver...); err != nil {
		return nil, nil, err
	}
	if controller, err = i.Controller(ctx, proxied, ofController...); err != nil {
		return nil, nil, err
	}
	return receiver, controller, errors.Join(controller.Start(ctx), receiver.Start(ctx))
}

// Serve creates a Repository.
func (i *Installation) Serve(
	ctx context.Context, namespace, name string, spec pacv1alpha1.RepositorySpec,
) (*pacv1alpha1.Repository, error) {
	repositories := i.Plumbline.PipelinesascodeV1alpha1().Repositories(namespace)
	repository, err := repositories.Create(ctx, &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec,
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating Repository %s/%s: %w", namespace, name, err)
	}
	return repository, nil
}

// OnGitLab is a project of a GitLab at URL, a token for it, "" for none, and the secret of its
// webhook.
type OnGitLab struct{ Service, URL, Token, Hook string }

// Spec creates the Secret with both and returns the spec of a Repository that has it.
func (p OnGitLab) Spec(
	ctx context.Context, i *Installation, secret metav1.ObjectMeta,
) (pacv1alpha1.RepositorySpec, error) {
	object := &corev1.Secret{ObjectMeta: secret, StringData: map[string]string{"webhook.secret": p.Hook}}
	if p.Token != "" {
		object.StringData["provider.token"] = p.Token
	}
	_, err := i.Kube.CoreV1().Secrets(secret.Namespace).Create(ctx, object, metav1.CreateOptions{})
	named := &pacv1alpha1.Secret{Name: secret.Name}
	return pacv1alpha1.RepositorySpec{URL: p.URL, GitProvider: &pacv1alpha1.GitProvider{
		Type: "gitlab", URL: p.Service, Secret: named, WebhookSecret: named.DeepCopy(),
	}}, err
}

// Claimed waits until a Repository owns a URL: before that, receivers answer that no Repository
// does.
func (i *Installation) Claimed(ctx context.Context, url string) error {
	canonical, err := v1alpha1.CanonicalURL(url)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, claimLimit)
	defer cancel()
	claims := i.Plumbline.PlumblineV1alpha1().RepositoryClaims(i.Namespace)
	if err := cluster.Poll(ctx, 50*time.Millisecond, func() error {
		_, err := claims.Get(ctx, v1alpha1.ClaimName(canonical), metav1.GetOptions{})
		return err
	}); err != nil {
		return fmt.Errorf("waiting for the claim of %s: %w", url, err)
	}
	return nil
}

// Close kills all processes that the installation made, and starts the deletion of its namespace
// and of those that are named. What cannot be removed ends with the cluster. A nil installation
// has nothing to close.
func (i *Installation) Close(namespaces ...string) (err error) {
	if i == nil {
		return nil
	}
	i.mu.Lock()
	made := i.made
	i.mu.Unlock()
	for _, p := range made {
		err = errors.Join(err, p.Kill())
		if p.Proxy != nil {
			p.Proxy.Close()
		}
		if p.Limit != nil {
			p.Limit.Release()
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	for _, namespace := range append(namespaces, i.Namespace) {
		_ = i.Cluster.DeleteNamespace(ctx, namespace)
	}
	return err
}
