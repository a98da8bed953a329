// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"testing"
	"time"
)

// Namespace creates a namespace for one test. It stays until the cluster ends, because deleting
// one costs some 200 API calls.
func (c *Cluster) Namespace(t testing.TB, prefix string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	name, err := c.CreateNamespace(ctx, prefix)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// NamespaceNamed is Namespace for objects that were recorded in a namespace of that name. It is
// deleted with the test, and created when an earlier one of that name is gone.
func (c *Cluster) NamespaceNamed(t testing.TB, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := Poll(ctx, 200*time.Millisecond, func() error { return c.MakeNamespace(ctx, name) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := c.DeleteNamespace(ctx, name); err != nil {
			t.Logf("cleaning up: %v", err)
		}
	})
}
