// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CreateNamespace creates a namespace with a name of its own that begins with
// prefix, and waits until pods can be created in it.
func (c *Cluster) CreateNamespace(ctx context.Context, prefix string) (name string, err error) {
	name = prefix + "-" + strings.ToLower(rand.Text()[:6])
	return name, c.MakeNamespace(ctx, name)
}

// MakeNamespace creates a namespace of that name, and waits until pods can be created in it.
func (c *Cluster) MakeNamespace(ctx context.Context, name string) error {
	if err := c.create(ctx, object("v1", "Namespace", "", name)); err != nil {
		return err
	}
	accounts := c.dynamic.Resource(serviceAccounts()).Namespace(name)
	err := Poll(ctx, 20*time.Millisecond, func() error {
		_, err := accounts.Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("waiting for the default service account of %s: %w", name, err)
	}
	return nil
}

// DeleteNamespace begins the deletion of a namespace and does not wait for its end.
func (c *Cluster) DeleteNamespace(ctx context.Context, name string) error {
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	if err := c.dynamic.Resource(namespaces).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting namespace %s: %w", name, err)
	}
	return nil
}

// tokenSeconds is a day. A pod's token is valid for an hour, and its kubelet renews it; nothing
// does that here, and a campaign takes longer.
const tokenSeconds = int64(24 * 60 * 60)

// Token is a bearer token of a service account, as a pod of that account would have it, valid for
// tokenSeconds.
func (c *Cluster) Token(ctx context.Context, namespace, serviceAccount string) (string, error) {
	request := object("authentication.k8s.io/v1", "TokenRequest", "", serviceAccount)
	request.Object["spec"] = map[string]any{"expirationSeconds": tokenSeconds}
	answer, err := c.dynamic.Resource(serviceAccounts()).Namespace(namespace).
		Create(ctx, request, metav1.CreateOptions{}, "token")
	if err != nil {
		return "", fmt.Errorf("asking for a token of %s/%s: %w", namespace, serviceAccount, err)
	}
	token, _, _ := unstructured.NestedString(answer.Object, "status", "token")
	if token == "" {
		return "", errors.New("asking for a token: the answer has none")
	}
	if given, _, _ := unstructured.NestedInt64(answer.Object, "spec", "expirationSeconds"); given != tokenSeconds {
		return "", fmt.Errorf("asking for a token: it is valid for %d seconds, want %d", given, tokenSeconds)
	}
	return token, nil
}

func serviceAccounts() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
}
