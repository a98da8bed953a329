// SPDX-License-Identifier: Apache-2.0

package webhooksecret_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
)

// A full shard fits into etcd, also with the shortest values, when the keys take most of it.
func TestFullShardFitsIntoEtcd(t *testing.T) {
	const etcd = 3 << 19 // --max-request-bytes
	for name, value := range map[string]webhooksecret.Value{
		"short":              {Current: []byte("x")},
		"short, two at once": {Current: []byte("x"), Previous: []byte("y")},
		"long":               {Current: []byte(strings.Repeat("x", webhooksecret.MaxValueBytes))},
	} {
		shard, fields := &corev1.Secret{Data: map[string][]byte{}}, strings.Builder{}
		for n := 0; n*value.Bytes() < webhooksecret.MaxShardBytes; n++ {
			webhooksecret.Put(shard.Data, webhooksecret.ID(pacv1alpha1.SecretKey{Namespace: "team", Name: fmt.Sprint(n)}), value)
		}
		for key := range shard.Data {
			fmt.Fprintf(&fields, `"f:%s":{},`, key)
		}
		shard.ManagedFields = []metav1.ManagedFieldsEntry{{FieldsV1: &metav1.FieldsV1{Raw: []byte(fields.String())}}}
		if got := shard.Size(); got > etcd*9/10 {
			t.Errorf("%s: %d copies take %d bytes, want less than %d", name, len(shard.Data), got, etcd)
		}
	}
}
