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
	"github.com/plumbline-ci/plumbline/pkg/receiver/recorder"
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

//nolint:revive // client-go decides what it takes
func (h hung) Patch(ctx context.Context, _ string, _ types.PatchType, _ []byte,
	_ metav1.PatchOptions, _ ...string) (*v1alpha1.GitEvent, error) {
	return nil, h.wait(ctx)
}

// When the API server hangs, a delivery is answered 503 within the 8 s of A1, or the time that
// -api-wait makes of them. The create alone may hang, or the look-ups before it take nearly as long
// as they may.
func TestHungAPIServerIs503InTime(t *testing.T) {
	for _, tc := range []struct {
		timeout      recorder.CallTimeout
		lookup, took time.Duration
	}{
		{0, 0, 3 * time.Second},
		{0, 2900 * time.Millisecond, 7 * time.Second},
		{recorder.CallTimeout(30 * time.Second), 0, 30 * time.Second},
		{recorder.CallTimeout(30 * time.Second), 29 * time.Second, 70 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t)
			h, r := e.replica(), e.recorder()
			r.Events, r.Timeout = hung{func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}, tc.timeout
			h.Recorder, h.Timeout = r, tc.timeout
			live := receiver.LiveView(e.client, systemNamespace, tc.timeout)
			h.Lookup.Live.Claim = func(ctx context.Context, name string) (*v1alpha1.RepositoryClaim, error) {
				<-time.After(tc.lookup)
				return live.Claim(ctx, name)
			}
			h.Lookup.Live.Repository = func(ctx context.Context, namespace, name string) (*pacv1alpha1.Repository, error) {
				<-time.After(tc.lookup)
				return live.Repository(ctx, namespace, name)
			}
			start := time.Now()
			answer := e.send(h, push("k").request())
			if took := time.Since(start); answer.Code != http.StatusServiceUnavailable || took != tc.took {
				t.Errorf("%+v: answered %d after %v, want 503", tc, answer.Code, took)
			}
		})
	}
}
