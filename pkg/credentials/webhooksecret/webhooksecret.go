// SPDX-License-Identifier: Apache-2.0

// Package webhooksecret defines the format of the copies of webhook secrets. The controllers write
// them and the receivers read them, because receivers may not read the original Secrets
// (docs/adr/0016).
//
// The copies are in a fixed number of Secrets of Plumbline's namespace, so that a Role can name
// each of them.
package webhooksecret

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

const (
	// AppKey is the key of the webhook secret in the GitHub App's Secret, as in Pipelines-as-Code.
	AppKey = "webhook.secret"
	// PreviousSuffix is appended to the key of a webhook's secret for the key of the previous one,
	// which is valid as long as it exists. A separate key can be added and removed without changing
	// the other one, and can have any value.
	PreviousSuffix = ".previous"

	// Shards is how many Secrets have the copies. The roles in config/ name them. One has space for
	// about 7,000 copies, and a receiver has a watch for each.
	Shards = 8
	// MaxValueBytes bounds a secret: one is sent as a header by GitLab, and proxies take 8 KiB of
	// headers together.
	MaxValueBytes = 1 << 10
	// MaxShardBytes is below the 1 MiB that the API server accepts of a Secret, and with its keys
	// below etcd's 1.5 MiB.
	MaxShardBytes = 768 << 10
	// MaxNamespaceBytes limits the copies for one namespace in a shard: about 600 copies, 5,000 in
	// all shards. So one tenant cannot fill the shards.
	MaxNamespaceBytes = 64 << 10

	shardPrefix = "plumbline-webhook-secrets-"
	// idLength is in hexadecimal digits. 128 bits are enough: the hashed names are not secret, and
	// to get another's copy takes a second preimage.
	idLength = 32

	// Asks is the ConfigMap with which receivers request that copies are made again.
	Asks = "plumbline-webhook-secrets-asks"
	// AsksKey is its only key: the IDs, with spaces between them. Each request replaces the one
	// before, so that it does not grow; watchers get each.
	AsksKey = "read-again"
	// MaxAsks is how many IDs one request may have.
	MaxAsks = 64
)

// CompleteAnnotation is on a shard after all of its Secrets were read at least once. If a secret
// has no copy in the shard then, there is nothing to copy, or it is newer.
const CompleteAnnotation = plumbline.GroupName + "/complete"

// ID returns the name of a webhook secret in the shards and in requests.
func ID(key pacv1alpha1.SecretKey) string {
	sum := sha256.Sum256([]byte(key.Namespace + "/" + key.Name + "/" + key.Key)) // no part contains a slash
	return hex.EncodeToString(sum[:])[:idLength]
}

// ShardOf returns the number of the shard for an ID, from 0. It is 0 for a text that is not an ID.
func ShardOf(id string) int {
	first, err := hex.DecodeString(id[:min(2, len(id))])
	if err != nil || len(first) == 0 {
		return 0
	}
	return int(first[0]) % Shards
}

// ShardName returns the name of a shard's Secret.
func ShardName(shard int) string { return fmt.Sprintf("%s%d", shardPrefix, shard) }

// ShardNumber returns the number of the shard with that name; false for any other Secret.
func ShardNumber(name string) (int, bool) {
	for shard := range Shards {
		if name == ShardName(shard) {
			return shard, true
		}
	}
	return 0, false
}

// Complete reports whether a shard, which may be nil, was filled once.
func Complete(shard *corev1.Secret) bool {
	return shard != nil && shard.Annotations[CompleteAnnotation] == "true"
}

// Value is a webhook's secret, with which its deliveries are verified.
type Value struct {
	// Current is never empty; Previous is, unless the secret is being rotated.
	Current, Previous []byte
}

// In returns the values of a key in a Secret of an administrator or a team, without surrounding
// white space. It returns false if there is no such key or it is empty.
func In(secret *corev1.Secret, key string) (Value, bool) {
	v := Value{Current: bytes.TrimSpace(secret.Data[key]), Previous: bytes.TrimSpace(secret.Data[key+PreviousSuffix])}
	return v, len(v.Current) > 0
}

// TooLong reports whether a value has more bytes than are copied.
func (v Value) TooLong() bool {
	return len(v.Current) > MaxValueBytes || len(v.Previous) > MaxValueBytes
}

// keyBytes is how many bytes a key takes in etcd: once with its value, and once in the managed
// fields.
const keyBytes = 2*idLength + 16

// Bytes returns how many bytes the copy takes of its shard in etcd.
func (v Value) Bytes() int {
	n := keyBytes + len(v.Current)
	if len(v.Previous) > 0 {
		n += keyBytes + 2*len(PreviousSuffix) + len(v.Previous)
	}
	return n
}

// Copy returns a copy in a shard's data.
func Copy(data map[string][]byte, id string) (Value, bool) { return In(&corev1.Secret{Data: data}, id) }

// Put writes a copy into a shard's data.
func Put(data map[string][]byte, id string, v Value) {
	Remove(data, id)
	data[id] = v.Current
	if len(v.Previous) > 0 {
		data[id+PreviousSuffix] = v.Previous
	}
}

// Remove deletes a copy from a shard's data.
func Remove(data map[string][]byte, id string) {
	delete(data, id)
	delete(data, id+PreviousSuffix)
}

// Asked returns the IDs of a request, at most MaxAsks.
func Asked(text string) []string {
	return strings.Fields(text[:min(len(text), MaxAsks*(idLength+1))])
}
