// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// stage is a cluster of this package's own, with Plumbline in the product's namespace: most
// problems of an installation affect the whole cluster. Its tests run one after the other.
type stage struct {
	*Installation
	before []*unstructured.Unstructured // config/ as it was applied
}

var shared stage // set once before any test runs

func TestMain(m *testing.M) {
	os.Exit(cluster.Suite{Name: "installation", Limit: 10 * time.Minute, Prepare: install}.Run(m))
}

func install(ctx context.Context, c *cluster.Cluster, dir string) error {
	programs, err := Build(ctx, dir)
	if err != nil {
		return err
	}
	git := forge.New(forge.Options{})
	if err := git.Start(); err != nil {
		return err
	}
	app := git.CreateApp(7, "plumbline", "", "webhook-secret-of-the-test")
	if err := Define(ctx, c); err != nil {
		return err
	}
	shared.Installation, err = New(ctx, Options{Cluster: c, Forge: git, App: app, Programs: programs, Namespace: product})
	if err != nil {
		return err
	}
	shared.before, err = manifests()
	return err
}

// within bounds one test.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// eventually polls until f returns nil.
func eventually(ctx context.Context, t *testing.T, what string, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 40*time.Second)
	defer cancel()
	if err := cluster.Poll(ctx, 200*time.Millisecond, f); err != nil {
		t.Fatalf("not in time: %s: %v", what, err)
	}
}

// must ends the test at an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// client is one of client-go's.
type client[T any] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	Update(ctx context.Context, object T, o metav1.UpdateOptions) (T, error)
}

// change changes an object as a second `kubectl apply` of config/ does: it takes fields over.
func change[T any](ctx context.Context, t *testing.T, c client[T], name string, how func(T)) {
	t.Helper()
	object, err := c.Get(ctx, name, metav1.GetOptions{})
	must(t, err)
	how(object)
	_, err = c.Update(ctx, object, metav1.UpdateOptions{FieldManager: "plumbline-test-cluster"})
	must(t, err)
}
