// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"knative.dev/pkg/leaderelection"
	"knative.dev/pkg/reconciler"
)

// If the keys of a queue are known, only leases with a key are requested: here two, and the process
// leads both keys.
func TestNoElectionForALeaseWithoutAKey(t *testing.T) {
	client := fake.NewClientset()
	ctx, stop := context.WithCancel(t.Context())
	election, err := New(ctx.Done(), client, "plumbline", leaderelection.ComponentConfig{
		Component: "controller", Buckets: 10, Identity: "one", LeaseDuration: lease, RenewDeadline: lease / 2,
		RetryPeriod: lease / 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer election.Wait()
	defer stop()
	keys := []types.NamespacedName{{Namespace: "plumbline", Name: "first"}, {Namespace: "plumbline", Name: "other"}}
	led := &reconciler.LeaderAwareFuncs{}
	queue := NewLeasedReconciler(With(ctx, election), &worker{LeaderAwareFuncs: reconciler.LeaderAwareFuncs{
		PromoteFunc: led.Promote, DemoteFunc: led.Demote,
	}}, "events", keys...)
	queue.Enqueue = func(reconciler.Bucket, types.NamespacedName) {}
	if err := queue.Promote(reconciler.UniversalBucket(), nil); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		eventually(t, key.Name+" is led", func() bool { return led.IsLeaderFor(key) && queue.Holds(key) })
	}
	list, err := client.CoordinationV1().Leases("plumbline").List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("%d leases (%v), want two", len(list.Items), err)
	}
}
