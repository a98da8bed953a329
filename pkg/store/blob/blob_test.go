// SPDX-License-Identifier: Apache-2.0

package blob_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

const namespace = "plumbline"

// noise does not compress, so n bytes need n/MaxChunkBytes chunks or more.
func noise(n int) []byte {
	data := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(data) // documented never to fail
	return data
}

// cut returns the payloads of data, as they would be written.
func cut(t *testing.T, name, event string, data []byte) (v1alpha1.BlobReference, []*v1alpha1.EventPayload) {
	t.Helper()
	packed, err := blob.Pack(data)
	if err != nil {
		t.Fatal(err)
	}
	return packed.Chunks(namespace, name, event)
}

func write(t *testing.T, client *fake.Clientset, data []byte) v1alpha1.BlobReference {
	t.Helper()
	ref, payloads := cut(t, "push-1-payload", "push-1", data)
	if err := blob.Write(t.Context(), client.PlumblineV1alpha1().EventPayloads(namespace), payloads); err != nil {
		t.Fatal(err)
	}
	return ref
}

func TestRoundTrip(t *testing.T) {
	for name, c := range map[string]struct {
		data   []byte
		chunks int32
	}{
		"nothing is one chunk":                          {[]byte{}, 1},
		"a small body is one chunk":                     {[]byte(`{"ref":"refs/heads/main"}`), 1},
		"20 MB of JSON that compresses well are few":    {bytes.Repeat([]byte(`{"added":["a"]}`), 20_000_000/15), 1},
		"20 MB that do not compress need 77 chunks":     {noise(20_000_000), 77},
		"one byte more than a chunk's worth needs two":  {noise(v1alpha1.MaxChunkBytes + 1), 2},
		"a body that ends as gzip's trailer comes in 2": {noise(v1alpha1.MaxChunkBytes), 2},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewSimpleClientset()
			ref := write(t, client, c.data)
			if ref.Chunks != c.chunks || ref.Size != int64(len(c.data)) {
				t.Errorf("%d chunks for %d bytes, want %d for %d", ref.Chunks, ref.Size, c.chunks, len(c.data))
			}
			got, err := blob.Read(t.Context(), client.PlumblineV1alpha1().EventPayloads(namespace), ref)
			if err != nil || !bytes.Equal(got, c.data) {
				t.Errorf("read %d bytes, %v; want the %d written", len(got), err, len(c.data))
			}
		})
	}
}

func TestPackingIsDeterministicAndBounded(t *testing.T) {
	_, a := cut(t, "n", "push-1", noise(300_000))
	_, b := cut(t, "n", "push-1", noise(300_000))
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("the same data gave other chunks: %s", diff)
	}
	for i, p := range a {
		if len(p.Data) > v1alpha1.MaxChunkBytes || p.Labels[plumbline.EventLabel] != "push-1" || p.Namespace != namespace {
			t.Errorf("chunk %d: %d bytes, labels %v, namespace %q", i, len(p.Data), p.Labels, p.Namespace)
		}
	}
	if _, err := blob.Pack(make([]byte, blob.MaxBytes), []byte("x")); !fault.Is(err, fault.Invalid) {
		t.Errorf("too much data: %v, want an Invalid fault", err)
	}
}

// A stream without chunks is read and checked like one in chunks.
func TestUnpackWholeStream(t *testing.T) {
	data := []byte(`{"ref":"refs/heads/main"}`)
	packed, err := blob.Pack(data[:5], data[5:])
	if err != nil {
		t.Fatal(err)
	}
	ref := packed.Whole()
	if want := (v1alpha1.BlobReference{Digest: blob.Digest(data), Size: int64(len(data))}); ref != want {
		t.Errorf("the reference is %+v, want %+v", ref, want)
	}
	if got, err := blob.Unpack(packed.Stream, ref); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%q, %v", got, err)
	}
	for name, damaged := range map[string]struct {
		stream []byte
		ref    v1alpha1.BlobReference
	}{
		"no stream":      {nil, ref},
		"half a stream":  {packed.Stream[:len(packed.Stream)/2], ref},
		"another digest": {packed.Stream, v1alpha1.BlobReference{Digest: blob.Digest(nil), Size: ref.Size}},
		"a short size":   {packed.Stream, v1alpha1.BlobReference{Digest: ref.Digest, Size: ref.Size - 1}},
		"no size":        {packed.Stream, v1alpha1.BlobReference{Digest: ref.Digest, Size: -1}},
		"an absurd size": {packed.Stream, v1alpha1.BlobReference{Digest: ref.Digest, Size: 1 << 60}},
	} {
		if _, err := blob.Unpack(damaged.stream, damaged.ref); fault.Of(err) == nil ||
			fault.Of(err).Reason != "CorruptPayload" {
			t.Errorf("%s: %v, want the fault CorruptPayload", name, err)
		}
	}
	// A reader that expects chunks, as the version before does, reports a reference without chunks
	// as corrupt, and not as deleted.
	if _, err := blob.Read(t.Context(), shelf{}, ref); fault.Of(err) == nil || fault.Of(err).Reason != "CorruptPayload" {
		t.Errorf("%v, want the fault CorruptPayload", err)
	}
}

func TestWriteMayBeRepeated(t *testing.T) {
	client := fake.NewSimpleClientset()
	write(t, client, noise(600_000))
	write(t, client, noise(600_000)) // fails the test unless it succeeds

	_, other := cut(t, "push-1-payload", "push-1", []byte("other"))
	err := blob.Write(t.Context(), client.PlumblineV1alpha1().EventPayloads(namespace), other)
	if f := fault.Of(err); f == nil || f.Class != fault.Operator || f.Reason != "ForeignPayload" {
		t.Errorf("other data under the same name: %v, want the Operator fault ForeignPayload", err)
	}
}

func TestWriteNeverBlamesTheAuthor(t *testing.T) {
	for name, answer := range map[string]error{
		"an admission policy denies our object": apierrors.NewBadRequest(`admission webhook "x" denied the request: no`),
		"RBAC": apierrors.NewForbidden(v1alpha1.Resource("eventpayloads"), "n",
			errors.New(`User "x" cannot create`)),
		"500": apierrors.NewInternalError(errors.New("boom")),
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewSimpleClientset()
			client.PrependReactor("create", "eventpayloads",
				func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, answer })
			_, payloads := cut(t, "n", "e", []byte("x"))
			err := blob.Write(t.Context(), client.PlumblineV1alpha1().EventPayloads(namespace), payloads)
			if err == nil || fault.Is(err, fault.Invalid) {
				t.Errorf("Write: %v, want an error that is not Invalid", err)
			}
		})
	}
}

func TestReadDetectsDamage(t *testing.T) {
	for name, damage := range map[string]func(ctx context.Context, c *fake.Clientset, ref *v1alpha1.BlobReference) error{
		"a flipped byte": func(ctx context.Context, c *fake.Clientset, ref *v1alpha1.BlobReference) error {
			api := c.PlumblineV1alpha1().EventPayloads(namespace)
			p, err := api.Get(ctx, ref.Name+"-1", metav1.GetOptions{})
			if err != nil {
				return err
			}
			p.Data[100] ^= 1
			_, err = api.Update(ctx, p, metav1.UpdateOptions{})
			return err
		},
		"a chunk that became empty": func(ctx context.Context, c *fake.Clientset, ref *v1alpha1.BlobReference) error {
			p := &v1alpha1.EventPayload{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ref.Name + "-0"}}
			_, err := c.PlumblineV1alpha1().EventPayloads(namespace).Update(ctx, p, metav1.UpdateOptions{})
			return err
		},
		"a reference with too few chunks": func(_ context.Context, _ *fake.Clientset, ref *v1alpha1.BlobReference) error {
			ref.Chunks--
			return nil
		},
		"a reference without chunks": func(_ context.Context, _ *fake.Clientset, ref *v1alpha1.BlobReference) error {
			ref.Chunks = 0
			return nil
		},
		"a reference with absurd chunks": func(_ context.Context, _ *fake.Clientset, ref *v1alpha1.BlobReference) error {
			ref.Chunks = 1 << 30
			return nil
		},
		"a stream longer than the size": func(_ context.Context, _ *fake.Clientset, ref *v1alpha1.BlobReference) error {
			ref.Size--
			return nil
		},
		"a negative size": func(_ context.Context, _ *fake.Clientset, ref *v1alpha1.BlobReference) error {
			ref.Size = -1
			return nil
		},
		"the digest of another body's blob": func(_ context.Context, _ *fake.Clientset, ref *v1alpha1.BlobReference) error {
			ref.Digest = blob.Digest(nil)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewSimpleClientset()
			ref := write(t, client, noise(600_000))
			if err := damage(t.Context(), client, &ref); err != nil {
				t.Fatal(err)
			}
			_, err := blob.Read(t.Context(), client.PlumblineV1alpha1().EventPayloads(namespace), ref)
			if f := fault.Of(err); f == nil || f.Reason != "CorruptPayload" || f.Class != fault.Operator {
				t.Errorf("Read: %v, want the Operator fault CorruptPayload", err)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	client := fake.NewSimpleClientset()
	api := client.PlumblineV1alpha1().EventPayloads(namespace)
	ref := write(t, client, noise(600_000))
	for range 2 { // the second time all are gone already
		if err := blob.Delete(t.Context(), api, ref); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := blob.Read(t.Context(), api, ref); !apierrors.IsNotFound(err) {
		t.Errorf("Read after Delete: %v, want NotFound in the chain", err)
	}
}

func TestDeleteContinuesAfterAnError(t *testing.T) {
	client := fake.NewSimpleClientset()
	ref := write(t, client, noise(600_000))
	client.PrependReactor("delete", "eventpayloads", func(a clienttesting.Action) (bool, runtime.Object, error) {
		first := a.(clienttesting.DeleteAction).GetName() == ref.Name+"-0"
		return first, nil, apierrors.NewInternalError(errors.New("boom"))
	})
	api := client.PlumblineV1alpha1().EventPayloads(namespace)
	if err := blob.Delete(t.Context(), api, ref); !apierrors.IsInternalError(err) {
		t.Errorf("Delete: %v, want the API server's error", err)
	}
	left, err := api.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 1 {
		t.Errorf("%d chunks left, %v; want only the one that could not be deleted", len(left.Items), err)
	}
}
