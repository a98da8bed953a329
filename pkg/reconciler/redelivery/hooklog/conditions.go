// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// verdict is what the condition Webhook is to say. Its message is the same as long as somebody has
// to do the same.
type verdict struct {
	status          corev1.ConditionStatus
	reason, message string
}

func called() verdict {
	return verdict{
		corev1.ConditionTrue,
		"Called",
		"GitLab calls the webhook. What it did not send while the webhook was paused or disabled is in no log: a push to another than the default branch comes only if it is made again.",
	}
}

func notCalled(t *target, hook provider.Hook) verdict {
	const remedy = "See its answers in the project's Settings, Webhooks, under Recent events, mend what they name, and press Test there: an answer of 2xx enables it at once. " +
		"What happens until then is not sent later."
	if hook.State == provider.HookDisabled {
		return verdict{
			corev1.ConditionFalse,
			"WebhookDisabled",
			fmt.Sprintf(
				"GitLab does not call webhook %d any more, because its calls have failed 40 times in a row, so no event of %s starts anything. %s",
				hook.ID,
				t.project.URL,
				remedy,
			),
		}
	}
	return verdict{
		corev1.ConditionFalse,
		"WebhookPaused",
		fmt.Sprintf(
			"GitLab has paused webhook %d for up to a day, because its calls have failed four times in a row or more; its disabled_until says until when. %s",
			hook.ID,
			remedy,
		),
	}
}

func denied(t *target) verdict {
	return verdict{
		corev1.ConditionUnknown,
		"PermissionMissing",
		fmt.Sprintf(
			"Missed deliveries cannot be found, nor whether GitLab has paused the webhook: it shows both to the role Maintainer only, which the token in secret %s/%s does not have. "+
				"Runs do not need it. Without it, press Resend Request in the project's Settings, Webhooks after an outage.",
			t.service.Token.Namespace,
			t.service.Token.Name,
		),
	}
}

func noHook(t *target) verdict {
	return verdict{
		corev1.ConditionUnknown,
		"WebhookNotFound",
		fmt.Sprintf(
			"None of the webhooks of %s leads to %s, so missed deliveries cannot be found: a group's webhook shows none. "+
				"Without a group's, add one; if the address is wrong, an administrator sets webhook-url.",
			t.project.URL,
			t.leads,
		),
	}
}

func noLog(t *target) verdict {
	return verdict{
		corev1.ConditionUnknown,
		"NoDeliveryLog",
		fmt.Sprintf(
			"Missed deliveries cannot be found: the GitLab at %s has no log of them in its API, which it has since 17.3.",
			t.base,
		),
	}
}

// conditions tell Repositories of their webhooks.
type conditions struct {
	read     func(ctx context.Context, namespace, name string) (*pacv1alpha1.Repository, error)
	update   func(ctx context.Context, repository *pacv1alpha1.Repository) error
	recorder record.EventRecorder
	// namespace is Plumbline's own.
	namespace string
}

// tell makes the condition Webhook say what was found. Repositories whose webhooks never had a
// problem have no such condition.
func (r *Reconciler) tell(ctx context.Context, t *target, v verdict) error {
	r.metrics.found(t.owner, v)
	if r.conditions.told(t.repository, v) {
		return nil
	}
	return r.conditions.write(ctx, t, v)
}

// told reports whether a Repository says so already, or has to say something else.
func (c conditions) told(repository *pacv1alpha1.Repository, v verdict) bool {
	if repository.By(c.namespace).Leaves(pacv1alpha1.RepositoryWebhook) {
		return true
	}
	is := repository.Status.GetCondition(pacv1alpha1.RepositoryWebhook)
	if is == nil {
		return v.status == corev1.ConditionTrue
	}
	return is.Status == v.status && is.Reason == v.reason && is.Message == v.message
}

func (c conditions) write(ctx context.Context, t *target, v verdict) error {
	repository, err := c.read(ctx, t.owner.Namespace, t.owner.Name)
	if fault.Gone(err) {
		return nil
	}
	if err != nil {
		return fault.FromKube(fault.VerbRead, err)
	}
	if c.told(repository, v) {
		return nil
	}
	was, by := repository.Status.GetCondition(pacv1alpha1.RepositoryWebhook), repository.By(c.namespace)
	kind := corev1.EventTypeWarning
	switch v.status {
	case corev1.ConditionTrue:
		kind = corev1.EventTypeNormal
		by.MarkTrue(pacv1alpha1.RepositoryWebhook, v.reason, v.message)
	case corev1.ConditionFalse:
		by.MarkFalse(pacv1alpha1.RepositoryWebhook, v.reason, v.message)
	default:
		kind = corev1.EventTypeNormal
		by.MarkUnknown(pacv1alpha1.RepositoryWebhook, v.reason, v.message)
	}
	if err := c.update(ctx, repository); err != nil {
		return fault.FromKube(
			fault.VerbUpdate,
			fmt.Errorf("writing the status of Repository %s: %w", t.owner, err),
		) // a conflict, too
	}
	if was == nil || was.Reason != v.reason {
		c.recorder.Event(repository, kind, v.reason, v.message)
	}
	return nil
}
