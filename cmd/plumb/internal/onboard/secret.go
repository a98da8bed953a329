// SPDX-License-Identifier: Apache-2.0

package onboard

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// secretValues says where the token and the webhook's secret token of a Repository are stored.
type secretValues struct {
	namespace, name, tokenKey string
	webhookName, webhookKey   string
}

func secretOf(repository *pacv1alpha1.Repository) *secretValues {
	service, err := pacv1alpha1.ServiceOf(repository, nil)
	if err != nil { // only a global Repository causes one
		return &secretValues{}
	}
	return &secretValues{
		namespace: repository.Namespace,
		name:      service.Token.Name, tokenKey: service.Token.Key,
		webhookName: service.Webhook.Name, webhookKey: service.Webhook.Key,
	}
}

// String names the Secret of the token.
func (s *secretValues) String() string { return fmt.Sprintf("Secret %s/%s", s.namespace, s.name) }

// read returns the two values by their keys; a value that is missing is empty.
func (s *secretValues) read(ctx context.Context, c *kube.Cluster) (map[string]string, error) {
	values := map[string]string{}
	for key, name := range map[string]string{s.tokenKey: s.name, s.webhookKey: s.webhookName} {
		secret, err := c.Kube.CoreV1().Secrets(s.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, kube.Failed(fmt.Sprintf("reading Secret %s/%s", s.namespace, name), err)
		}
		values[key] = string(secret.Data[key])
	}
	return values, nil
}

// put sets one key and leaves the others.
func (s *secretValues) put(ctx context.Context, c *kube.Cluster, key, value string) error {
	name := s.name
	if key == s.webhookKey {
		name = s.webhookName
	}
	patch, err := json.Marshal(map[string]any{"data": map[string][]byte{key: []byte(value)}})
	if err != nil {
		return err
	}
	secrets := c.Kube.CoreV1().Secrets(s.namespace)
	if _, err := secrets.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return kube.Failed(fmt.Sprintf("changing Secret %s/%s", s.namespace, name), err)
	}
	return nil
}

// create creates the Secret. One that exists stays if it has the keys.
func (s *secretValues) create(
	ctx context.Context, c *kube.Cluster, values map[string]string, say func(string, ...any),
) error {
	data := map[string][]byte{}
	for key, value := range values {
		data[key] = []byte(value)
	}
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name}, Data: data}
	_, err := c.Kube.CoreV1().Secrets(s.namespace).Create(ctx, object, metav1.CreateOptions{})
	switch {
	case err == nil:
		say("%s was created", s)
		return nil
	case !apierrors.IsAlreadyExists(err):
		return kube.Failed("creating "+s.String(), err)
	}
	known, err := s.read(ctx, c)
	if err != nil {
		return err
	}
	if known[s.tokenKey] != values[s.tokenKey] {
		return fmt.Errorf("%s exists with another token: replace it with plumb webhook update-token, or delete the Secret", s)
	}
	say("%s exists already and stays", s)
	return nil
}
