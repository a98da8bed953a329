// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
	"github.com/plumbline-ci/plumbline/pkg/receiver/secrets"
)

// copies returns the copies that controllers have made, none if e.copied is nil.
func (e *env) copies() *secrets.Copies {
	c := secrets.New(e.refresher, e.clock)
	c.Wait = time.Millisecond // no copy arrives
	if e.copied != nil {
		for _, shard := range shards(e.copied) {
			c.Set(shard)
		}
	}
	return c
}

// shards returns complete shards with each key of the Secrets.
func shards(secrets map[string]map[string]string) []*corev1.Secret {
	all := make([]*corev1.Secret, webhooksecret.Shards)
	for n := range all {
		all[n] = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name: webhooksecret.ShardName(n), Annotations: map[string]string{webhooksecret.CompleteAnnotation: "true"},
			},
			Data: map[string][]byte{},
		}
	}
	for name, data := range secrets {
		source := &corev1.Secret{Data: map[string][]byte{}}
		for key, value := range data {
			source.Data[key] = []byte(value)
		}
		for key := range data {
			id := webhooksecret.ID(secretKey(name, key))
			if value, found := webhooksecret.In(source, key); found {
				webhooksecret.Put(all[webhooksecret.ShardOf(id)].Data, id, value)
			}
		}
	}
	return all
}

func secretKey(secret, key string) pacv1alpha1.SecretKey {
	namespace, name, _ := strings.Cut(secret, "/")
	return pacv1alpha1.SecretKey{Namespace: namespace, Name: name, Key: key}
}
