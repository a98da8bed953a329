// SPDX-License-Identifier: Apache-2.0

// Package blob keeps immutable byte strings that are too big for one object in EventPayload objects: the raw bodies
// of deliveries and the PipelineRuns of plans. A blob is written before the object that refers to it, so a reference
// is never to something that was not there.
package blob

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// MaxBytes is the most a blob may have, uncompressed. The largest delivery has 25 MiB (GitHub's cap); a plan is made
// from text that fits GitHub's 1 MiB a file.
const MaxBytes = 32 << 20

// maxChunks is what MaxBytes of incompressible data need, and one for gzip's own bytes.
const maxChunks = MaxBytes/v1alpha1.MaxChunkBytes + 1

// Make cuts the gzip stream of data into chunks of at most v1alpha1.MaxChunkBytes, named <name>-0, <name>-1, … and
// labelled with the event they belong to. Data may come in parts, which are not copied into one. The same data gives the same
// chunks. More than MaxBytes is an Invalid fault.
func Make(namespace, name, event string, data ...[]byte) (v1alpha1.BlobReference, []*v1alpha1.EventPayload, error) {
	size := 0
	for _, part := range data {
		size += len(part)
	}
	if size > MaxBytes {
		return v1alpha1.BlobReference{}, nil, fault.Invalidf("TooLarge", "%s has %d bytes; at most %d can be kept", name, size, MaxBytes)
	}
	stream, err := compress(data)
	if err != nil {
		return v1alpha1.BlobReference{}, nil, fmt.Errorf("compressing %s: %w", name, err)
	}
	var payloads []*v1alpha1.EventPayload
	for len(stream) > 0 {
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
	chunks := int32(len(payloads)) //nolint:gosec // at most maxChunks, because MaxBytes was checked
	ref := v1alpha1.BlobReference{Name: name, Digest: Digest(data...), Chunks: chunks, Size: int64(size)}
	return ref, payloads, nil
}

// Digest is BlobReference.digest of data, in however many parts.
func Digest(data ...[]byte) string {
	sum := sha256.New()
	for _, part := range data {
		sum.Write(part)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

func chunkName(name string, index int) string { return fmt.Sprintf("%s-%d", name, index) }

// compress returns a gzip stream without name and time, so that equal data gives equal bytes.
func compress(data [][]byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
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

// expand undoes compress; it reads at most size+1 bytes, so a wrong stream cannot fill the memory.
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
