// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/store/repositories"
)

func state(status corev1.ConditionStatus, reason, format string, args ...any) repositories.State {
	return repositories.State{Status: status, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func called() repositories.State {
	return state(
		corev1.ConditionTrue,
		reasonCalled,
		"GitLab calls the webhook. What it did not send while the webhook was paused or disabled is in no log: "+
			"pushes to other than the default branch have to be repeated.",
	)
}

func notCalled(t *target, hook provider.Hook) repositories.State {
	const remedy = "See its responses in the project's Settings, Webhooks, under Recent events, fix what they name, and press Test there: an answer of 2xx enables it at once. " +
		"What happens until then is not sent later."
	if hook.State == provider.HookDisabled {
		return state(
			corev1.ConditionFalse,
			reasonWebhookDisabled,
			"GitLab does not call webhook %d any more, because its calls have failed 40 times in a row, "+
				"so no event of %s starts anything. %s",
			hook.ID,
			t.project.URL,
			remedy,
		)
	}
	return state(
		corev1.ConditionFalse,
		reasonWebhookPaused,
		"GitLab has paused webhook %d for up to a day, because its calls have failed four times in a row or more; "+
			"its disabled_until says until when. %s",
		hook.ID,
		remedy,
	)
}

func denied(t *target) repositories.State {
	return state(
		corev1.ConditionUnknown,
		reasonPermissionMissing,
		"Plumbline cannot find undelivered webhooks, nor see whether GitLab has paused the webhook: "+
			"GitLab shows both to the role Maintainer only, which the token in secret %s/%s does not have. "+
			"Runs do not need that role. Without it, press Resend Request in the project's Settings, Webhooks after an outage.",
		t.service.Token.Namespace,
		t.service.Token.Name,
	)
}

func noHook(t *target) repositories.State {
	return state(
		corev1.ConditionUnknown,
		reasonWebhookNotFound,
		"None of the webhooks of %s leads to %s, so Plumbline cannot find undelivered webhooks: "+
			"GitLab has no log of a group's webhook. If the project has no group's webhook, add one to it; if the address is wrong, an administrator sets webhook-url.",
		t.project.URL,
		t.leads,
	)
}

func noLog(t *target) repositories.State {
	return state(
		corev1.ConditionUnknown,
		reasonNoDeliveryLog,
		"Plumbline cannot find undelivered webhooks: the GitLab at %s has no log of them in its API. "+
			"GitLab has it since 17.3.",
		t.base,
	)
}

// report makes the condition Webhook say what was found.
func (s *source) report(ctx context.Context, t *target, state repositories.State) error {
	status := state.Status
	if state.Reason == reasonNotRecorded {
		status = corev1.ConditionTrue // GitLab calls it
	}
	s.metrics.Called(t.owner, status)
	if s.condition.Current(t.repository, state) {
		return nil
	}
	return s.condition.Write(ctx, t.owner, state)
}
