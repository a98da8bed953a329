// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/runtime/panics"
)

// getter is what Read needs of the generated EventPayloadInterface.
type getter interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*v1alpha1.EventPayload, error)
}

// creator is what Write needs of the generated EventPayloadInterface.
type creator interface {
	getter
	Create(ctx context.Context, payload *v1alpha1.EventPayload, opts metav1.CreateOptions) (*v1alpha1.EventPayload, error)
}

// deleter is what Delete needs of the generated EventPayloadInterface.
type deleter interface {
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
}

// writers is how many chunks are written at once. 20 MB of incompressible JSON are 58 chunks. One
// after the other, they take most of the time for which a Git service waits for an answer. More
// than two at once slow other users of the API server down.
const writers = 2

// After the first easyChunks, which 20 MB of usual JSON need, there is a pause between two calls: a
// blob of 75 chunks without pauses would keep the API server busy for a second. The pauses of the
// largest blob are 0.9 s when it is written, well within the time for a delivery.
const (
	easyChunks = 8
	pause      = 20 * time.Millisecond
)

// breathe pauses before the call for a chunk, unless ctx ends.
func breathe(ctx context.Context, chunk int) {
	if chunk < easyChunks {
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Write creates the payloads that Chunks returned. After an error, some may exist. A payload that
// exists with the same data is not an error, so Write may be repeated. One with other data is an
// Operator fault with reason "ForeignPayload". Errors of the API server are classified as for an
// update, so that a denial does not blame the author.
func Write(ctx context.Context, client creator, payloads []*v1alpha1.EventPayload) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	var caught panics.Catcher
	for i, payload := range payloads {
		group.Go(func() (err error) {
			breathe(ctx, i)
			caught.Run(func() { err = writeOne(ctx, client, payload) })
			return err
		})
	}
	err := group.Wait()
	caught.Again()
	return err
}

func writeOne(ctx context.Context, client creator, payload *v1alpha1.EventPayload) error {
	_, err := client.Create(ctx, payload, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return compare(ctx, client, payload)
	}
	if err != nil {
		return fmt.Errorf("creating EventPayload %s: %w", payload.Name, fault.FromKube(fault.VerbUpdate, err))
	}
	return nil
}

func compare(ctx context.Context, client getter, want *v1alpha1.EventPayload) error {
	have, err := client.Get(ctx, want.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading EventPayload %s, which exists: %w", want.Name, fault.FromKube(fault.VerbRead, err))
	}
	if !bytes.Equal(have.Data, want.Data) {
		return fault.Operatorf(reasonForeignPayload,
			"EventPayload %s/%s exists with other data; delete it if no GitEvent refers to it", want.Namespace, want.Name)
	}
	return nil
}

// Read returns the bytes of a reference. If a chunk is missing, apierrors.IsNotFound is true for
// the error. If the bytes do not match the digest, the error is an Operator fault with reason
// "CorruptPayload".
func Read(ctx context.Context, client getter, ref v1alpha1.BlobReference) ([]byte, error) {
	if ref.Chunks < 1 || ref.Chunks > maxChunks || ref.Size > MaxBytes {
		return nil, corrupt(ref, fmt.Errorf("%d chunks for %d bytes", ref.Chunks, ref.Size))
	}
	var stream []byte
	for i := range int(ref.Chunks) {
		breathe(ctx, i)
		payload, err := client.Get(ctx, chunkName(ref.Name, i), metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading EventPayload %s: %w", chunkName(ref.Name, i), fault.FromKube(fault.VerbRead, err))
		}
		stream = append(stream, payload.Data...)
	}
	return Unpack(stream, ref)
}

// Unpack returns the bytes of a stream. If they do not match the reference's digest, the error is
// an Operator fault with reason "CorruptPayload".
func Unpack(stream []byte, ref v1alpha1.BlobReference) ([]byte, error) {
	if ref.Size < 0 || ref.Size > MaxBytes {
		return nil, corrupt(ref, fmt.Errorf("%d bytes", ref.Size))
	}
	data, err := expand(stream, ref.Size)
	if err != nil {
		return nil, corrupt(ref, err)
	}
	if got := Digest(data); got != ref.Digest || int64(len(data)) != ref.Size {
		return nil, corrupt(ref, fmt.Errorf("its digest is %s, its size at least %d", got, len(data)))
	}
	return data, nil
}

// Expand returns the bytes of a stream without a reference. If its checksum is wrong, the error is
// an Operator fault with reason "CorruptPayload".
func Expand(stream []byte) ([]byte, error) {
	data, err := expand(stream, int64(min(Size(stream), MaxBytes)))
	if err != nil {
		return nil, fault.Operatorf(reasonCorruptPayload, "%d bytes are no gzip stream: %w", len(stream), err)
	}
	return data, nil
}

// StoredBytes returns how many bytes payloads take in etcd, which stores custom resources as JSON.
func StoredBytes(payloads []*v1alpha1.EventPayload) (n int64) {
	for _, payload := range payloads {
		n += InJSON(payload.Data)
	}
	return n
}

// Delete deletes the chunks. A missing chunk is not an error. Delete continues after an error and
// returns the first one.
func Delete(ctx context.Context, client deleter, ref v1alpha1.BlobReference) error {
	var first error
	for i := range int(min(ref.Chunks, maxChunks)) {
		breathe(ctx, i)
		err := client.Delete(ctx, chunkName(ref.Name, i), metav1.DeleteOptions{})
		if err == nil || apierrors.IsNotFound(err) || first != nil {
			continue
		}
		first = fmt.Errorf("deleting EventPayload %s: %w", chunkName(ref.Name, i), fault.FromKube(fault.VerbDelete, err))
	}
	return first
}

func corrupt(ref v1alpha1.BlobReference, why error) error {
	return fault.Operatorf(reasonCorruptPayload, "the blob %s is not the one with %s: %w", ref.Name, ref.Digest, why)
}
