// SPDX-License-Identifier: Apache-2.0

package onboard

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// place is a key of a Secret.
type place struct{ name, key string }

// secretValues says where the token and the webhook's secret token of a Repository are stored.
type secretValues struct {
	namespace      string
	token, webhook place
}

func secretOf(repository *pacv1alpha1.Repository) *secretValues {
	service, err := pacv1alpha1.ServiceOf(repository, nil)
	if err != nil { // only a global Repository causes one
		return &secretValues{}
	}
	return &secretValues{
		namespace: repository.Namespace,
		token:     place{service.Token.Name, service.Token.Key},
		webhook:   place{service.Webhook.Name, service.Webhook.Key},
	}
}

// String names the Secret of the token.
func (s *secretValues) String() string { return s.at(s.token) }

func (s *secretValues) at(p place) string { return fmt.Sprintf("Secret %s/%s", s.namespace, p.name) }

// read returns the two values; a value that is missing is empty.
func (s *secretValues) read(ctx context.Context, c *kube.Cluster) (token, webhook string, err error) {
	values := map[place]string{s.token: "", s.webhook: ""}
	for _, p := range slices.Compact([]place{s.token, s.webhook}) { // in this order: an error names the first
		secret, err := c.Kube.CoreV1().Secrets(s.namespace).Get(ctx, p.name, metav1.GetOptions{})
		if err != nil {
			return "", "", kube.Failed("reading "+s.at(p), err)
		}
		values[p] = string(secret.Data[p.key])
	}
	return values[s.token], values[s.webhook], nil
}

// putToken stores a token and leaves the other keys.
func (s *secretValues) putToken(ctx context.Context, c *kube.Cluster, token string) error {
	patch, err := json.Marshal(map[string]any{"data": map[string][]byte{s.token.key: []byte(token)}})
	if err != nil {
		return err
	}
	secrets := c.Kube.CoreV1().Secrets(s.namespace)
	if _, err := secrets.Patch(ctx, s.token.name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return kube.Failed("changing "+s.String(), err)
	}
	return nil
}

// generate stores a new secret token for the webhook, unless another call has stored one. It
// returns the stored one.
func (s *secretValues) generate(ctx context.Context, c *kube.Cluster) (string, error) {
	secrets := c.Kube.CoreV1().Secrets(s.namespace)
	secret, err := secrets.Get(ctx, s.webhook.name, metav1.GetOptions{})
	if err != nil {
		return "", kube.Failed("reading "+s.at(s.webhook), err)
	}
	if stored := secret.Data[s.webhook.key]; len(stored) > 0 {
		return string(stored), nil
	}
	value := random()
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[s.webhook.key] = []byte(value)
	what := "changing " + s.at(s.webhook)
	switch _, err := secrets.Update(ctx, secret, metav1.UpdateOptions{}); {
	case apierrors.IsConflict(err):
		return "", fmt.Errorf("%s: it was changed at the same time: run the command again", what)
	case err != nil:
		return "", kube.Failed(what, err)
	}
	return value, nil
}

// create creates the Secret. One that exists stays if it has the token, and the webhook's secret
// token if one is given; otherwise that one is generated.
func (s *secretValues) create(
	ctx context.Context, c *kube.Cluster, token, webhook string, say func(string, ...any),
) error {
	data := map[string][]byte{s.token.key: []byte(token), s.webhook.key: []byte(cmp.Or(webhook, random()))}
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.token.name}, Data: data}
	_, err := c.Kube.CoreV1().Secrets(s.namespace).Create(ctx, object, metav1.CreateOptions{})
	switch {
	case err == nil:
		say("%s was created", s)
		return nil
	case !apierrors.IsAlreadyExists(err):
		return kube.Failed("creating "+s.String(), err)
	}
	knownToken, knownWebhook, err := s.read(ctx, c)
	switch {
	case err != nil:
		return err
	case knownToken != token:
		return fmt.Errorf("%s exists with another token: replace it with plumb webhook update-token, or delete the Secret", s)
	case webhook != "" && knownWebhook != webhook:
		return fmt.Errorf("%s exists, and its key %s has another value: change it, or delete the Secret and run the command again",
			s, s.webhook.key)
	}
	say("%s exists already and stays", s)
	return nil
}
