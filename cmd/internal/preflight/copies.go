// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
)

// copies checks whether the controllers have copied the webhook secrets.
func (c *Checker) copies(ctx context.Context) []Finding {
	var incomplete []string
	for shard := range webhooksecret.Shards {
		name := webhooksecret.ShardName(shard)
		// The receiver may list them by name, but not get them.
		list, err := c.kube.CoreV1().Secrets(c.Namespace).
			List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
		if err != nil {
			return []Finding{c.unread(ctx, fmt.Sprintf("Secret %s/%s", c.Namespace, name), err, "list it", roles)}
		}
		if found := only(list.Items, name); !webhooksecret.Complete(found) {
			incomplete = append(incomplete, name)
		}
	}
	if len(incomplete) == 0 {
		return nil
	}
	return []Finding{
		{
			Object:  fmt.Sprintf("Secrets %s/%s", c.Namespace, strings.Join(incomplete, ", ")),
			Problem: "do not have all webhook secrets yet: receivers do not become ready, and deliveries that cannot be verified are answered 503",
			Remedy: fmt.Sprintf(
				"let the controllers run, which copy them: kubectl -n %s get pods, then kubectl -n %s logs deployment/%s",
				c.Namespace, c.Namespace, Controller,
			),
		},
	}
}

func only(secrets []corev1.Secret, name string) *corev1.Secret {
	for i := range secrets {
		if secrets[i].Name == name {
			return &secrets[i]
		}
	}
	return nil
}

// excess checks whether the receiver may still read what only earlier versions need.
func (c *Checker) excess(ctx context.Context) []Finding {
	const object = "ClusterRoleBinding plumbline-receiver-secrets"
	allowed, err := c.allowed(ctx, authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets"})
	if err != nil {
		return []Finding{unreviewed(object, err)}
	}
	if !allowed {
		return nil
	}
	return []Finding{
		{
			Object: object,
			Problem: "or another one lets " + string(
				c.Component,
			) + " read every Secret of the cluster, which only versions before this one need",
			Remedy: "when no receiver of such a version runs any more: kubectl delete clusterrolebinding,clusterrole plumbline-receiver-secrets",
		},
	}
}
