// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// webhookSecretKey is the key PaC's users have in the App's Secret.
	webhookSecretKey = "webhook.secret"
	// previousSuffix makes of the key of a webhook's secret the key of the one before it, which is valid as long as it is
	// there. A key of its own can be added and removed without touching the other one, and any value fits it.
	previousSuffix = ".previous"
)

type secretGetter interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.Secret, error)
}

// WebhookSecret is what a webhook's deliveries are verified with.
type WebhookSecret struct {
	// Key is where it was read.
	Key pacv1alpha1.SecretKey
	// Current is never empty; Previous is, unless the secret is being rotated.
	Current, Previous []byte
}

// previousKey says where the previous secret is, for people.
func (s WebhookSecret) previousKey() string {
	return fmt.Sprintf("%s/%s %s%s", s.Key.Namespace, s.Key.Name, s.Key.Key, previousSuffix)
}

// readSecret reads a webhook's secret live for every delivery: a rotated one works at once, and the receiver needs no
// right to list Secrets. Values are without the white space around them. It is an Operator fault when the Secret or its
// key is missing: that says nothing of the delivery.
func readSecret(ctx context.Context, client secretGetter, key pacv1alpha1.SecretKey) (WebhookSecret, error) {
	ctx, cancel := context.WithTimeout(ctx, kubeCallBudget)
	defer cancel()
	secret, err := client.Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return WebhookSecret{}, fault.Operatorf("SecretMissing", "Secret %s/%s does not exist: create it with the key %s", key.Namespace, key.Name, key.Key)
	}
	if err != nil {
		return WebhookSecret{}, fmt.Errorf("reading Secret %s/%s: %w", key.Namespace, key.Name, fault.FromKube(fault.VerbRead, err))
	}
	read := WebhookSecret{
		Key: key, Current: bytes.TrimSpace(secret.Data[key.Key]), Previous: bytes.TrimSpace(secret.Data[key.Key+previousSuffix]),
	}
	if len(read.Current) == 0 {
		return WebhookSecret{}, fault.Operatorf("SecretMissing", "Secret %s/%s has no key %s, or it is empty", key.Namespace, key.Name, key.Key)
	}
	return read, nil
}

// AppSecret reads the App's webhook secret.
type AppSecret struct {
	// Client is for the Secrets of one namespace.
	Client secretGetter
	// Namespace and Name are those of the Secret.
	Namespace, Name string
}

// Read returns the secret as it is now; it is an Operator fault when it is missing.
func (s AppSecret) Read(ctx context.Context) (WebhookSecret, error) {
	return readSecret(ctx, s.Client, pacv1alpha1.SecretKey{Namespace: s.Namespace, Name: s.Name, Key: webhookSecretKey})
}

// verify checks a delivery. While there is a previous secret both are always tried: the time it takes does not tell which
// of them fits.
func (d *delivery) verify(secret WebhookSecret) error {
	current := d.provider.Webhook.Verify(d.header, d.body, secret.Current)
	if len(secret.Previous) == 0 {
		return current
	}
	previous := d.provider.Webhook.Verify(d.header, d.body, secret.Previous)
	if current != nil && previous == nil {
		d.previousKey = secret.previousKey()
		return nil
	}
	return current
}
