// SPDX-License-Identifier: Apache-2.0

// Package k8schain is what Tekton needs of the package whose name it has, without the registries of
// the clouds.
package k8schain

import (
	"context"

	"github.com/google/go-containerregistry/pkg/authn"
	kauth "github.com/google/go-containerregistry/pkg/authn/kubernetes"
	"k8s.io/client-go/kubernetes"
)

// Options say whose secrets are read.
type Options = kauth.Options

// New returns the logins that are in the cluster's secrets.
func New(ctx context.Context, client kubernetes.Interface, options Options) (authn.Keychain, error) {
	return kauth.New(ctx, client, options)
}
