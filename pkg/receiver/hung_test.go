// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/receiver"
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

// A delivery that an API server lets hang is answered 503 within the 8 s of A1, or the time that
// -api-wait makes of them: where its own create hangs, and where the look-ups before have taken
// nearly as long as they may.
func TestHungAPIServerIsGivenUpInTime(t *testing.T) {
	for _, tc := range []struct {
		wait         receiver.APIWait
		lookup, took time.Duration
	}{
		{0, 0, 3 * time.Second},
		{0, 2900 * time.Millisecond, 7 * time.Second},
		{receiver.APIWait(30 * time.Second), 0, 30 * time.Second},
		{receiver.APIWait(30 * time.Second), 29 * time.Second, 70 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			h, r := w.replica(), w.recorder()
			r.Events, r.Wait = hung{func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}, tc.wait
			h.Recorder, h.Wait = r, tc.wait
			live := receiver.LiveView(w.client, systemNamespace, tc.wait)
			h.Lookup.Live.Claim = func(ctx context.Context, name string) (*v1alpha1.RepositoryClaim, error) {
				<-time.After(tc.lookup)
				return live.Claim(ctx, name)
			}
			h.Lookup.Live.Repository = func(ctx context.Context, namespace, name string) (*pacv1alpha1.Repository, error) {
				<-time.After(tc.lookup)
				return live.Repository(ctx, namespace, name)
			}
			start := time.Now()
			answer := w.send(h, push("k").request())
			if took := time.Since(start); answer.Code != http.StatusServiceUnavailable || took != tc.took {
				t.Errorf("%+v: answered %d after %v, want 503", tc, answer.Code, took)
			}
		})
	}
}
