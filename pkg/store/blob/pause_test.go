// SPDX-License-Identifier: Apache-2.0

package blob_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

// quick is an API server that needs no time.
type quick struct{}

func (quick) Create(_ context.Context, payload *v1alpha1.EventPayload, _ metav1.CreateOptions) (*v1alpha1.EventPayload,
	error) {
	return payload, nil
}

func (quick) Get(context.Context, string, metav1.GetOptions) (*v1alpha1.EventPayload, error) {
	return &v1alpha1.EventPayload{}, nil
}

func (quick) Delete(context.Context, string, metav1.DeleteOptions) error { return nil }

// A usual blob is written, read and deleted without pauses. The largest one has pauses, which take
// less time than a delivery has.
func TestLargeBlobPausesBetweenCalls(t *testing.T) {
	t.Parallel()
	for chunks, want := range map[int]struct{ write, other time.Duration }{8: {}, 108: {time.Second, 2 * time.Second}} {
		t.Run(fmt.Sprint(chunks, " chunks"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				payloads := make([]*v1alpha1.EventPayload, chunks)
				for i := range payloads {
					payloads[i] = &v1alpha1.EventPayload{}
				}
				ref := v1alpha1.BlobReference{Name: "large", Chunks: int32(chunks)}
				took := func(do func()) time.Duration {
					began := time.Now()
					do()
					return time.Since(began)
				}
				if got := took(func() { _ = blob.Write(t.Context(), quick{}, payloads) }); got != want.write {
					t.Errorf("it is written in %v, want %v", got, want.write)
				}
				if got := took(func() { _, _ = blob.Read(t.Context(), quick{}, ref) }); got != want.other {
					t.Errorf("it is read in %v, want %v", got, want.other)
				}
				if got := took(func() { _ = blob.Delete(t.Context(), quick{}, ref) }); got != want.other {
					t.Errorf("it is deleted in %v, want %v", got, want.other)
				}
			})
		})
	}
}
