// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	typedpac "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// finding is what the condition Webhook is to say. Its message stays the same as long as the user
// has to do the same.
type finding struct {
	status          corev1.ConditionStatus
	reason, message string
}

func called() finding {
	return finding{
		corev1.ConditionTrue,
		"Called",
		"GitLab calls the webhook. What it did not send while the webhook was paused or disabled is in no log: a push to another than the default branch comes only if it is made again.",
	}
}

func notCalled(t *target, hook provider.Hook) finding {
	const remedy = "See its responses in the project's Settings, Webhooks, under Recent events, fix what they name, and press Test there: an answer of 2xx enables it at once. " +
		"What happens until then is not sent later."
	if hook.State == provider.HookDisabled {
		const text = "GitLab does not call webhook %d any more, because its calls have failed 40 times in a row, so no event of %s starts anything. %s"
		return finding{corev1.ConditionFalse, "WebhookDisabled", fmt.Sprintf(text, hook.ID, t.project.URL, remedy)}
	}
	const text = "GitLab has paused webhook %d for up to a day, because its calls have failed four times in a row or more; its disabled_until says until when. %s"
	return finding{corev1.ConditionFalse, "WebhookPaused", fmt.Sprintf(text, hook.ID, remedy)}
}

func denied(t *target) finding {
	const text = "Plumbline cannot find undelivered webhooks, nor see whether GitLab has paused the webhook: GitLab shows both to the role Maintainer only, which the token in secret %s/%s does not have. " +
		"Runs do not need that role. Without it, press Resend Request in the project's Settings, Webhooks after an outage."
	return finding{
		corev1.ConditionUnknown,
		"PermissionMissing",
		fmt.Sprintf(text, t.service.Token.Namespace, t.service.Token.Name),
	}
}

func noHook(t *target) finding {
	const text = "None of the webhooks of %s leads to %s, so Plumbline cannot find undelivered webhooks: GitLab has no log of a group's webhook. " +
		"If the project has no group's webhook, add one to it; if the address is wrong, an administrator sets webhook-url."
	return finding{corev1.ConditionUnknown, "WebhookNotFound", fmt.Sprintf(text, t.project.URL, t.leads)}
}

func noLog(t *target) finding {
	const text = "Plumbline cannot find undelivered webhooks: the GitLab at %s has no log of them in its API. GitLab has it since 17.3."
	return finding{corev1.ConditionUnknown, "NoDeliveryLog", fmt.Sprintf(text, t.base)}
}

// conditions write the condition Webhook of Repositories.
type conditions struct {
	client   typedpac.RepositoriesGetter
	recorder record.EventRecorder
	// namespace is Plumbline's own.
	namespace string
}

// report makes the condition Webhook say what was found. A Repository whose webhook never had a
// problem has no such condition.
func (s *source) report(ctx context.Context, t *target, f finding) error {
	status := f.status
	if f.reason == reasonNotRecorded {
		status = corev1.ConditionTrue // GitLab calls it
	}
	s.metrics.Called(t.owner, status)
	if s.conditions.current(t.repository, f) {
		return nil
	}
	return s.conditions.write(ctx, t, f)
}

// current reports whether a Repository needs no write: it says so already, or another installation
// writes the condition.
func (c conditions) current(repository *pacv1alpha1.Repository, f finding) bool {
	if repository.By(c.namespace).Leaves(pacv1alpha1.RepositoryWebhook) {
		return true
	}
	is := repository.Status.GetCondition(pacv1alpha1.RepositoryWebhook)
	if is == nil {
		return f.status == corev1.ConditionTrue
	}
	return is.Status == f.status && is.Reason == f.reason && is.Message == f.message
}

func (c conditions) write(ctx context.Context, t *target, f finding) error {
	repositories := c.client.Repositories(t.owner.Namespace)
	repository, err := repositories.Get(ctx, t.owner.Name, metav1.GetOptions{})
	if fault.Gone(err) {
		return nil
	}
	if err != nil {
		return fault.FromKube(fault.VerbRead, err)
	}
	if c.current(repository, f) {
		return nil
	}
	was, by := repository.Status.GetCondition(pacv1alpha1.RepositoryWebhook), repository.By(c.namespace)
	kind := corev1.EventTypeNormal
	switch f.status {
	case corev1.ConditionTrue:
		by.MarkTrue(pacv1alpha1.RepositoryWebhook, f.reason, f.message)
	case corev1.ConditionFalse:
		kind = corev1.EventTypeWarning
		by.MarkFalse(pacv1alpha1.RepositoryWebhook, f.reason, f.message)
	default:
		by.MarkUnknown(pacv1alpha1.RepositoryWebhook, f.reason, f.message)
	}
	if _, err := repositories.UpdateStatus(ctx, repository, metav1.UpdateOptions{}); err != nil { // a conflict, too
		return fault.FromKube(fault.VerbUpdate, fmt.Errorf("writing the status of Repository %s: %w", t.owner, err))
	}
	if was == nil || was.Reason != f.reason {
		c.recorder.Event(repository, kind, f.reason, f.message)
	}
	return nil
}
