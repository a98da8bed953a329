// SPDX-License-Identifier: Apache-2.0

package blob_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

// shelf holds chunks by name.
type shelf map[string][]byte

func (s shelf) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1alpha1.EventPayload, error) {
	data, found := s[name]
	if !found {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("eventpayloads"), name)
	}
	return &v1alpha1.EventPayload{Data: data}, nil
}

// Whatever is in the chunks, Read returns bytes with the right digest, or an error.
func FuzzRead(f *testing.F) {
	for _, data := range []string{"", `{"ref":"refs/heads/main"}`, "\x1f\x8b\x08", "\x00"} {
		f.Add([]byte(data), []byte{}, 0, int64(len(data)), int32(1))
		f.Add([]byte(data), []byte("\x1f\x8b"), 1, int64(1<<40), int32(2))
		f.Add([]byte(data), []byte{1}, 9, int64(-1), int32(-1))
	}
	f.Fuzz(func(t *testing.T, data, damage []byte, at int, size int64, chunks int32) {
		good, payloads := cut(t, "n", "e", data)
		stored := shelf{}
		for _, p := range payloads {
			stored[p.Name] = p.Data
		}
		got, err := blob.Read(t.Context(), stored, good)
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("read %d bytes, %v; want the %d written", len(got), err, len(data))
		}
		name := fmt.Sprintf("%s-%d", good.Name, 0)
		stored[name] = bytes.Clone(stored[name])
		if at >= 0 && at < len(stored[name]) {
			copy(stored[name][at:], damage)
		}
		for _, ref := range []v1alpha1.BlobReference{good,
			{Name: good.Name, Digest: good.Digest, Size: size, Chunks: chunks}} {
			got, err := blob.Read(t.Context(), stored, ref)
			if err == nil && blob.Digest(got) != ref.Digest {
				t.Errorf("%+v: %d bytes of another digest", ref, len(got))
			}
			if f := fault.Of(err); err != nil && f.Reason != "CorruptPayload" && !apierrors.IsNotFound(err) {
				t.Errorf("%+v: %v, want the fault CorruptPayload or NotFound", ref, err)
			}
		}
	})
}
