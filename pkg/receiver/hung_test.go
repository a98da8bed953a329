// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// hung answers nothing until the caller gives up.
type hung struct {
	wait func(ctx context.Context) error
}

func (h hung) Create(ctx context.Context, _ *v1alpha1.GitEvent, _ metav1.CreateOptions) (*v1alpha1.GitEvent, error) {
	return nil, h.wait(ctx)
}

func (h hung) Get(context.Context, string, metav1.GetOptions) (*v1alpha1.GitEvent, error) {
	return nil, apierrors.NewNotFound(v1alpha1.Resource("gitevents"), "x")
}

func (h hung) Patch(ctx context.Context, _ string, _ types.PatchType, _ []byte, _ metav1.PatchOptions, _ ...string) (*v1alpha1.GitEvent, error) { //nolint:revive // client-go decides what it takes
	return nil, h.wait(ctx)
}

func TestHungAPIServerIsGivenUpInTime(t *testing.T) { // within 8 s, in the bubble's time
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.recorder()
		r.Events = hung{func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		spec := &v1alpha1.GitEventSpec{Trigger: v1alpha1.TriggerPush, Provider: "test", Host: "h", DeliveryKey: "k"}
		start := time.Now()
		_, _, err := r.Record(t.Context(), spec, []byte("x"))
		if took := time.Since(start); took > 8*time.Second || !fault.Is(err, fault.Transient) {
			t.Errorf("%v after %v, want a Transient fault within 8 s", err, took)
		}
	})
}
