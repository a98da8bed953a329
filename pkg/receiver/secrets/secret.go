// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"fmt"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
)

// Secret is a webhook secret, with which deliveries are verified.
type Secret struct {
	// Key is where it was copied from.
	Key pacv1alpha1.SecretKey
	// Current is never empty. Previous is empty unless the secret is being rotated.
	Current, Previous []byte
	// newer is what Newer calls, nil if no newer copy can be requested.
	newer func(wait bool) (Secret, error)
}

// PreviousKey says where the previous secret is, for the log.
func (s Secret) PreviousKey() string {
	return fmt.Sprintf("%s/%s %s%s", s.Key.Namespace, s.Key.Name, s.Key.Key, webhooksecret.PreviousSuffix)
}

// Newer requests a newer copy when a delivery does not match this one, and waits for it if wait is
// set. If there is none, it returns a Secret without Current. The error is Transient if the request
// could not be sent: that says nothing of the delivery.
func (s Secret) Newer(wait bool) (Secret, error) {
	if s.newer == nil {
		return Secret{}, nil
	}
	return s.newer(wait)
}

// AppSecret is the App's webhook secret.
type AppSecret struct {
	Copies *Copies
	// Namespace and Name are those of the Secret that it is copied from.
	Namespace, Name string
}

// Read returns the copy; errors are those of Copies.Secret.
func (s AppSecret) Read(ctx context.Context) (Secret, error) {
	return s.Copies.Secret(ctx, pacv1alpha1.SecretKey{Namespace: s.Namespace, Name: s.Name, Key: webhooksecret.AppKey})
}
