// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"fmt"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/webhooksecret"
)

// WebhookSecret is what a webhook's deliveries are verified with.
type WebhookSecret struct {
	// Key is where it was copied from.
	Key pacv1alpha1.SecretKey
	// Current is never empty; Previous is, unless the secret is being rotated.
	Current, Previous []byte
	// newer asks for a newer copy, when a delivery does not fit this one, and waits for it if told to. It is nil when there is
	// nobody to be asked.
	newer func(wait bool) (WebhookSecret, error)
}

// previousKey says where the previous secret is, for people.
func (s WebhookSecret) previousKey() string {
	return fmt.Sprintf("%s/%s %s%s", s.Key.Namespace, s.Key.Name, s.Key.Key, webhooksecret.PreviousSuffix)
}

// AppSecret is the App's webhook secret.
type AppSecret struct {
	Copies *Copies
	// Namespace and Name are those of the Secret that it is copied from.
	Namespace, Name string
}

// Read returns the copy; errors are those of Copies.Secret.
func (s AppSecret) Read(ctx context.Context) (WebhookSecret, error) {
	return s.Copies.Secret(ctx, pacv1alpha1.SecretKey{Namespace: s.Namespace, Name: s.Name, Key: webhooksecret.AppKey})
}

// verify checks a delivery; one that does not fit may have been signed after the secret was copied, so a newer copy is
// asked for, and tried if it is waited for. The error is Transient when nobody could be asked: that says nothing of the
// delivery.
func (d *delivery) verify(secret WebhookSecret, wait bool) error {
	mismatch := d.fits(secret)
	if mismatch == nil || secret.newer == nil {
		return mismatch
	}
	newer, err := secret.newer(wait)
	if err != nil {
		return err
	}
	if newer.Current == nil {
		return mismatch
	}
	return d.fits(newer)
}

// fits checks a delivery. While there is a previous secret both are always tried: the time it takes does not tell which
// of them fits.
func (d *delivery) fits(secret WebhookSecret) error {
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
