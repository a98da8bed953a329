// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"fmt"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
)

// Secret is what a webhook's deliveries are verified with.
type Secret struct {
	// Key is where it was copied from.
	Key pacv1alpha1.SecretKey
	// Current is never empty; Previous is, unless the secret is being rotated.
	Current, Previous []byte
	// newer is what Newer calls, nil when there is nobody to be asked.
	newer func(wait bool) (Secret, error)
}

// PreviousKey says where the previous secret is, for people.
func (s Secret) PreviousKey() string {
	return fmt.Sprintf("%s/%s %s%s", s.Key.Namespace, s.Key.Name, s.Key.Key, webhooksecret.PreviousSuffix)
}

// Newer asks for a newer copy, when a delivery does not fit this one, and waits for it if told to.
// A Secret without Current is that none came. The error is Transient when nobody could be asked:
// that says nothing of the delivery.
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
