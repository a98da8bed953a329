// SPDX-License-Identifier: Apache-2.0

// Package webhooksecret is the form of the copies of webhook secrets: the controllers write them,
// the receivers read them. The receivers have no right to the Secrets that they are copied from
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
	// AppKey is the key of the webhook secret in the GitHub App's Secret; PaC's users have it.
	AppKey = "webhook.secret"
	// PreviousSuffix makes of the key of a webhook's secret the key of the one before it, which is
	// valid as long as it is there. A key of its own can be added and removed without touching the
	// other one, and any value fits it.
	PreviousSuffix = ".previous"

	// Shards is how many Secrets hold the copies. The roles in config/ name them. One has room for
	// about 7,000 copies, and a receiver has a watch for each.
	Shards = 8
	// MaxValueBytes bounds a secret: one is sent as a header by GitLab, and proxies take 8 KiB of
	// headers together.
	MaxValueBytes = 1 << 10
	// MaxShardBytes is below the 1 MiB that the API server takes of a Secret, with its keys in
	// etcd's 1.5 MiB.
	MaxShardBytes = 768 << 10
	// MaxNamespaceBytes is what the Secrets of one namespace may take of a shard: about 600 copies,
	// 5,000 over all shards. No tenant can fill what all share.
	MaxNamespaceBytes = 64 << 10

	shardPrefix = "plumbline-webhook-secrets-"
	// idLength is in hexadecimal digits. 128 bits are enough: the names that are hashed are no
	// secret, and to hit another's copy takes a second preimage.
	idLength = 32

	// Asks is the ConfigMap by which receivers ask for copies to be made again.
	Asks = "plumbline-webhook-secrets-asks"
	// AsksKey is its only key: the IDs, with spaces between them. Each ask replaces the one before,
	// so that it never grows; who watches sees each.
	AsksKey = "read-again"
	// MaxAsks is how many IDs one ask may have.
	MaxAsks = 64
)

// CompleteAnnotation is on a shard when, at least once, every Secret that it is for was looked at:
// whoever has no copy in it has none because there is none to make, or is newer.
const CompleteAnnotation = plumbline.GroupName + "/complete"

// ID names a webhook secret in the shards and in asks.
func ID(key pacv1alpha1.SecretKey) string {
	sum := sha256.Sum256([]byte(key.Namespace + "/" + key.Name + "/" + key.Key)) // no part can hold a slash
	return hex.EncodeToString(sum[:])[:idLength]
}

// ShardOf is the number of the shard that has the ID, from 0. It is 0 for what is no ID.
func ShardOf(id string) int {
	first, err := hex.DecodeString(id[:min(2, len(id))])
	if err != nil || len(first) == 0 {
		return 0
	}
	return int(first[0]) % Shards
}

// ShardName is the name of a shard's Secret.
func ShardName(shard int) string { return fmt.Sprintf("%s%d", shardPrefix, shard) }

// ShardNumber is the number of the shard of that name; false for any other Secret.
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

// Value is what the deliveries of a webhook are verified with.
type Value struct {
	// Current is never empty; Previous is, unless the secret is being rotated.
	Current, Previous []byte
}

// In reads a key of a Secret of an administrator or a team, without the white space around values.
// It is false when there is no such key or it is empty.
func In(secret *corev1.Secret, key string) (Value, bool) {
	v := Value{Current: bytes.TrimSpace(secret.Data[key]), Previous: bytes.TrimSpace(secret.Data[key+PreviousSuffix])}
	return v, len(v.Current) > 0
}

// TooLong reports whether a value has more bytes than are copied.
func (v Value) TooLong() bool {
	return len(v.Current) > MaxValueBytes || len(v.Previous) > MaxValueBytes
}

// keyBytes is what a key takes, which etcd has twice: with its value, and among the managed fields.
const keyBytes = 2*idLength + 16

// Bytes is what the copy takes of its shard, as etcd has it.
func (v Value) Bytes() int {
	n := keyBytes + len(v.Current)
	if len(v.Previous) > 0 {
		n += keyBytes + 2*len(PreviousSuffix) + len(v.Previous)
	}
	return n
}

// Copy reads a copy out of a shard's data.
func Copy(data map[string][]byte, id string) (Value, bool) { return In(&corev1.Secret{Data: data}, id) }

// Put writes a copy into a shard's data.
func Put(data map[string][]byte, id string, v Value) {
	Remove(data, id)
	data[id] = v.Current
	if len(v.Previous) > 0 {
		data[id+PreviousSuffix] = v.Previous
	}
}

// Remove takes a copy out of a shard's data.
func Remove(data map[string][]byte, id string) {
	delete(data, id)
	delete(data, id+PreviousSuffix)
}

// Asked returns the IDs of an ask, MaxAsks at most. Whoever writes it is believed nothing but that.
func Asked(text string) []string {
	ids := strings.Fields(text[:min(len(text), MaxAsks*(idLength+1))])
	return ids
}
