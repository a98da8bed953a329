// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// Reader reads the credentials that a Repository names, for calls without an event.
type Reader struct {
	// Namespace is Plumbline's own.
	Namespace string
	Kube      corev1client.SecretsGetter
}

// Read returns the credentials of a Repository for the service at base, which is own's. It reads
// the token live.
func (r Reader) Read(
	ctx context.Context, repository *pacv1alpha1.Repository, own pacv1alpha1.Service, base string, c *config.Config,
) (provider.Credentials, error) {
	if own.Token.Name == "" {
		return provider.Credentials{}, fault.Operatorf(fault.ReasonCredentialsMissing, "Repository %s/%s names no token",
			repository.Namespace, repository.Name)
	}
	secret, err := r.Kube.Secrets(own.Token.Namespace).Get(ctx, own.Token.Name, metav1.GetOptions{})
	token, err := tokenIn(secret, err, own.Token)
	if err != nil {
		return provider.Credentials{}, err
	}
	return loginOf(repository, own, token, reachOf(own, base, r.Namespace, c)), nil
}
