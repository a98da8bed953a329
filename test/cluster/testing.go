// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"os"
	"testing"
	"time"
)

// KeepEnv names the environment variable that, when set to anything, keeps the
// namespaces of tests for a look at what is in them.
const KeepEnv = "KEEP"

// Namespace creates a namespace for one test. When the test ends its deletion
// begins; nobody waits for that. With KeepEnv set it stays.
func (c *Cluster) Namespace(t testing.TB, prefix string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	name, err := c.CreateNamespace(ctx, prefix)
	if err != nil {
		t.Fatal(err)
	}
	c.endNamespace(t, name)
	return name
}

// NamespaceNamed is Namespace for objects that were recorded in one of that name. It waits for the end of one that is being
// deleted.
func (c *Cluster) NamespaceNamed(t testing.TB, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := Poll(ctx, 200*time.Millisecond, func() error { return c.createNamespace(ctx, name) }); err != nil {
		t.Fatal(err)
	}
	c.endNamespace(t, name)
}

func (c *Cluster) endNamespace(t testing.TB, name string) {
	t.Helper()
	t.Cleanup(func() {
		if os.Getenv(KeepEnv) != "" {
			t.Logf("kept namespace %s", name)
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := c.DeleteNamespace(ctx, name); err != nil {
			t.Logf("cleaning up: %v", err)
		}
	})
}
