// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"knative.dev/pkg/apis"
)

const (
	// RepositoryReady aggregates URL and Credentials.
	RepositoryReady = apis.ConditionReady
	// RepositoryURL means that this Repository owns the claim of its URL.
	RepositoryURL apis.ConditionType = "URL"
	// RepositoryCredentials means that the Git service and the cluster let Plumbline do what the open events need.
	RepositoryCredentials apis.ConditionType = "Credentials"
	// RepositorySettings means that all fields that are set are acted on. It is no part of Ready: the Repository is served.
	RepositorySettings apis.ConditionType = "Settings"
	// RepositoryBudget means that deliveries are recorded: open events have not used up what they may keep in the API server. It is
	// no part of Ready, and only Repositories whose deliveries were refused have it.
	RepositoryBudget apis.ConditionType = "Budget"
	// RepositoryWebhookSecret means that the receivers know the secret that the webhook's deliveries are verified with. It is no
	// part of Ready, and absent where there never was a problem.
	RepositoryWebhookSecret apis.ConditionType = "WebhookSecret"
	// RepositoryWebhook means that the Git service calls the project's webhook. It is Unknown where that cannot be seen, and missed
	// deliveries not be found. It is no part of Ready, and absent where there never was a problem.
	RepositoryWebhook apis.ConditionType = "Webhook"
)

// GetConditionSet returns the dependents of Ready.
func (*Repository) GetConditionSet() apis.ConditionSet {
	return apis.NewLivingConditionSet(RepositoryURL, RepositoryCredentials)
}

// GetGroupVersionKind tells knative the kind.
func (*Repository) GetGroupVersionKind() schema.GroupVersionKind {
	return SchemeGroupVersion.WithKind("Repository")
}

// MarkTrue records that a condition holds.
func (r *Repository) MarkTrue(condition apis.ConditionType, reason, message string) {
	r.GetConditionSet().Manage(&r.Status).MarkTrueWithReason(condition, reason, "%s", message)
}

// MarkFalse records what someone has to do something about.
func (r *Repository) MarkFalse(condition apis.ConditionType, reason, message string) {
	r.GetConditionSet().Manage(&r.Status).MarkFalse(condition, reason, "%s", message)
}

// MarkUnknown records what cannot be told.
func (r *Repository) MarkUnknown(condition apis.ConditionType, reason, message string) {
	r.GetConditionSet().Manage(&r.Status).MarkUnknown(condition, reason, "%s", message)
}
