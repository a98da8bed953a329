// SPDX-License-Identifier: Apache-2.0

// Package blob compresses immutable byte strings: the raw bodies of deliveries and the PipelineRuns
// of plans. It stores those that are too big for their GitEvent in EventPayload objects. A blob is
// written before the object that refers to it, so a reference is never to a missing blob.
package blob

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// MaxBytes is the largest blob, uncompressed. The largest delivery has 25 MiB (GitHub's limit); a
// plan is made from files of at most 1 MiB (GitHub's limit).
const MaxBytes = 32 << 20

// maxChunks is how many chunks MaxBytes of incompressible data need, and one for gzip's own bytes.
const maxChunks = MaxBytes/v1alpha1.MaxChunkBytes + 1

// Packed is a byte string as it is stored.
type Packed struct {
	// Stream is its gzip stream, the same for the same bytes.
	Stream []byte
	// Digest is as in BlobReference, Size the number of bytes before they were compressed.
	Digest string
	Size   int64
}

// Pack compresses data, which may be in parts: they are not copied together. It returns an Invalid
// fault for more than MaxBytes.
func Pack(data ...[]byte) (Packed, error) {
	size := 0
	for _, part := range data {
		size += len(part)
	}
	if size > MaxBytes {
		return Packed{}, fault.Invalidf(reasonTooLarge, "%d bytes are too many; at most %d can be kept", size, MaxBytes)
	}
	stream, err := compress(data)
	if err != nil {
		return Packed{}, fmt.Errorf("compressing: %w", err)
	}
	return Packed{Stream: stream, Digest: Digest(data...), Size: int64(size)}, nil
}

// Whole returns the reference for a stream that is in the object with the reference.
func (p Packed) Whole() v1alpha1.BlobReference {
	return v1alpha1.BlobReference{Digest: p.Digest, Size: p.Size}
}

// Chunks cuts the stream into chunks of at most v1alpha1.MaxChunkBytes, named <name>-0, <name>-1, …
// and labelled with the event they belong to.
func (p Packed) Chunks(namespace, name, event string) (v1alpha1.BlobReference, []*v1alpha1.EventPayload) {
	var payloads []*v1alpha1.EventPayload
	for stream := p.Stream; len(stream) > 0; {
		n := min(len(stream), v1alpha1.MaxChunkBytes)
		payloads = append(payloads, &v1alpha1.EventPayload{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace,
				Name:      chunkName(name, len(payloads)),
				Labels:    map[string]string{plumbline.EventLabel: event},
			},
			Data: stream[:n:n],
		})
		stream = stream[n:]
	}
	chunks := int32(len(payloads)) //nolint:gosec // at most maxChunks, because Pack takes MaxBytes
	return v1alpha1.BlobReference{Name: name, Digest: p.Digest, Chunks: chunks, Size: p.Size}, payloads
}

// InJSON returns how many bytes a stream takes in JSON, as etcd stores custom resources.
func InJSON(stream []byte) int64 { return int64(base64.StdEncoding.EncodedLen(len(stream))) }

// Digest returns BlobReference.digest of data, which may be in parts.
func Digest(data ...[]byte) string {
	sum := sha256.New()
	for _, part := range data {
		sum.Write(part)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

func chunkName(name string, index int) string { return fmt.Sprintf("%s-%d", name, index) }

// compressors are reused: a new one takes 800 KB, which costs more than to compress a delivery of
// 10.
var compressors sync.Pool //nolint:gochecknoglobals // memory without a state

// compress returns a gzip stream without name and time, so that equal data has equal bytes.
func compress(data [][]byte) ([]byte, error) {
	var out bytes.Buffer
	w, ok := compressors.Get().(*gzip.Writer)
	if !ok {
		w = gzip.NewWriter(&out)
	}
	w.Reset(&out)
	defer func() {
		w.Reset(io.Discard) // it keeps nothing of the data
		compressors.Put(w)
	}()
	for _, part := range data {
		if _, err := w.Write(part); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Size returns how many bytes a gzip stream of Pack has uncompressed, by its last four bytes; 0 if
// it is not a stream.
func Size(stream []byte) int {
	if len(stream) < 4 {
		return 0
	}
	return int(binary.LittleEndian.Uint32(stream[len(stream)-4:]))
}

// expand undoes compress. It reads at most size+1 bytes, so a wrong stream cannot fill the memory.
func expand(stream []byte, size int64) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(stream))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Grow(int(min(size, MaxBytes)))
	if _, err := io.Copy(&out, io.LimitReader(r, size+1)); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
