// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// webhookSecretKey is the key PaC's users have in the App's Secret.
const webhookSecretKey = "webhook.secret"

type secretGetter interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.Secret, error)
}

// AppSecret reads the App's webhook secret, live for every delivery: a rotated secret works at once, and the receiver
// needs no right to list Secrets.
type AppSecret struct {
	// Client is for the Secrets of one namespace.
	Client secretGetter
	// Namespace and Name are those of the Secret.
	Namespace, Name string
}

// Read returns the secret without the white space around it, never empty. It is an Operator fault when the Secret or
// its key is missing: that says nothing of the delivery.
func (s AppSecret) Read(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, kubeCallBudget)
	defer cancel()
	secret, err := s.Client.Get(ctx, s.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fault.Operatorf("SecretMissing", "Secret %s/%s does not exist: create it with the App's keys, %s among them", s.Namespace, s.Name, webhookSecretKey)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", s.Namespace, s.Name, fault.FromKube(fault.VerbRead, err))
	}
	value := bytes.TrimSpace(secret.Data[webhookSecretKey])
	if len(value) == 0 {
		return nil, fault.Operatorf("SecretMissing", "Secret %s/%s has no key %s, or it is empty", s.Namespace, s.Name, webhookSecretKey)
	}
	return value, nil
}
