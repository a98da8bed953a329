// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
)

// pacWebhookConfig is PaC's webhook configuration. It fails closed: without PaC no Repository can
// be changed.
const pacWebhookConfig = "validation.pipelinesascode.tekton.dev"

// exempt takes Plumbline's own namespace out of PaC's webhook, which refuses Repositories without a
// URL outside of PaC's namespace: the global Repository has none.
func (s *Start) exempt(ctx context.Context) error {
	other := metav1.LabelSelectorRequirement{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{s.Namespace},
	}
	known := func(r metav1.LabelSelectorRequirement) bool { return reflect.DeepEqual(r, other) }
	configs := s.Cluster.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	changed := false
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		config, err := configs.Get(ctx, pacWebhookConfig, metav1.GetOptions{})
		if err != nil {
			return err
		}
		changed = false
		for i := range config.Webhooks {
			selector := config.Webhooks[i].NamespaceSelector
			if selector == nil {
				selector = &metav1.LabelSelector{}
				config.Webhooks[i].NamespaceSelector = selector
			}
			if !slices.ContainsFunc(selector.MatchExpressions, known) {
				selector.MatchExpressions, changed = append(selector.MatchExpressions, other), true
			}
		}
		if changed {
			_, err = configs.Update(ctx, config, metav1.UpdateOptions{})
		}
		return err
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return kube.Failed("changing ValidatingWebhookConfiguration "+pacWebhookConfig, err)
	case changed:
		s.say("ValidatingWebhookConfiguration %s was changed: it does not check namespace %s", pacWebhookConfig, s.Namespace)
	}
	return nil
}

// deleteWebhook deletes PaC's webhook configuration.
func (m *Migration) deleteWebhook(ctx context.Context) error {
	err := m.Cluster.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().
		Delete(ctx, pacWebhookConfig, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return kube.Failed("deleting ValidatingWebhookConfiguration "+pacWebhookConfig, err)
	}
	m.say("Deleted ValidatingWebhookConfiguration %s, which would refuse every Repository", pacWebhookConfig)
	return nil
}
