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
	// RepositoryCredentials means that the Git service and the cluster let Plumbline do what
	// unsettled events need.
	RepositoryCredentials apis.ConditionType = "Credentials"
	// RepositorySettings means that Plumbline acts on all fields that are set. It is not part of
	// Ready: the Repository is served anyway.
	RepositorySettings apis.ConditionType = "Settings"
	// RepositoryBudget means that deliveries are recorded: unsettled events are within their
	// storage limits in the API server. It is not part of Ready. Only Repositories whose deliveries
	// were refused have it.
	RepositoryBudget apis.ConditionType = "Budget"
	// RepositoryWebhookSecret means that the receivers have the secret that verifies the webhook's
	// deliveries. It is not part of Ready, and absent if there never was a problem.
	RepositoryWebhookSecret apis.ConditionType = "WebhookSecret"
	// RepositoryWebhook means that the Git service calls the project's webhook. It is Unknown if
	// that cannot be read; then undelivered webhooks are not found. It is not part of Ready, and
	// absent if there never was a problem.
	RepositoryWebhook apis.ConditionType = "Webhook"
	// RepositoryPolicy means that the Git service shows the teams of settings.policy that events
	// have asked for. It is not part of Ready, and absent if there never was a problem.
	RepositoryPolicy apis.ConditionType = "Policy"
	// RepositoryToken means that the token that the Repository names does not expire soon. It is not
	// part of Ready, and absent if there never was such a token.
	RepositoryToken apis.ConditionType = "Token"
	// RepositorySlots means that no run has held a slot of the concurrency_limit for more than an
	// hour. It is not part of Ready, and absent if there never was such a run.
	RepositorySlots apis.ConditionType = "Slots"
)

// GetConditionSet returns the conditions that Ready depends on.
func (*Repository) GetConditionSet() apis.ConditionSet {
	return apis.NewLivingConditionSet(RepositoryURL, RepositoryCredentials)
}

// GetGroupVersionKind returns the kind.
func (*Repository) GetGroupVersionKind() schema.GroupVersionKind {
	return SchemeGroupVersion.WithKind("Repository")
}

// Writer sets a Repository's conditions for one installation.
//
// +k8s:deepcopy-gen=false
type Writer struct {
	repository   *Repository
	installation string
}

// By returns the Writer for an installation, which is named after its namespace.
func (r *Repository) By(installation string) Writer { return Writer{r, installation} }

// MustLeave reports whether this installation must leave a condition as it is, because another
// installation on the cluster has marked it as not true. Otherwise both would overwrite each other
// again and again.
func (w Writer) MustLeave(condition apis.ConditionType) bool {
	is, writer := w.repository.Status.GetCondition(condition), w.repository.Status.Annotations[writerOf(condition)]
	return is != nil && !is.IsTrue() && writer != "" && writer != w.installation
}

// writerOf returns the annotation of the status that names the installation that marked a condition
// as not true.
func writerOf(condition apis.ConditionType) string { return "plumbline.dev/" + string(condition) }

// MarkTrue marks a condition as true, unless another installation has marked it as not true.
func (w Writer) MarkTrue(condition apis.ConditionType, reason, message string) {
	if w.MustLeave(condition) {
		return
	}
	delete(w.repository.Status.Annotations, writerOf(condition))
	w.manage().MarkTrueWithReason(condition, reason, "%s", message)
}

// MarkFalse records a problem that a user has to fix, unless another installation has recorded one.
func (w Writer) MarkFalse(condition apis.ConditionType, reason, message string) {
	if w.sign(condition) {
		w.manage().MarkFalse(condition, reason, "%s", message)
	}
}

// MarkUnknown records that the state is not known, unless another installation has recorded a
// problem.
func (w Writer) MarkUnknown(condition apis.ConditionType, reason, message string) {
	if w.sign(condition) {
		w.manage().MarkUnknown(condition, reason, "%s", message)
	}
}

// Signed reports whether this installation has marked a condition as not true.
func (w Writer) Signed(condition apis.ConditionType) bool {
	return w.repository.Status.Annotations[writerOf(condition)] == w.installation
}

// Withdraw removes what this installation has recorded, because it no longer serves the Repository.
// The URL is then marked as not served, unsigned, so that another installation may overwrite it.
// claimed says whether this installation still has a claim; without one, another installation may
// already have marked the URL as served.
func (w Writer) Withdraw(reason, message string, claimed bool) {
	for _, condition := range []apis.ConditionType{
		RepositorySettings, RepositoryBudget, RepositoryWebhookSecret, RepositoryWebhook, RepositoryPolicy, RepositoryToken,
		RepositorySlots,
	} {
		if w.Signed(condition) {
			delete(w.repository.Status.Annotations, writerOf(condition))
			_ = w.manage().ClearCondition(condition) // only the conditions of Ready are refused
		}
	}
	if w.Signed(RepositoryCredentials) {
		w.MarkTrue(RepositoryCredentials, reason, message)
	}
	if w.Signed(RepositoryURL) || claimed && !w.MustLeave(RepositoryURL) {
		delete(w.repository.Status.Annotations, writerOf(RepositoryURL))
		w.manage().MarkFalse(RepositoryURL, reason, "%s", message)
	}
}

func (w Writer) manage() apis.ConditionManager {
	return w.repository.GetConditionSet().Manage(&w.repository.Status)
}

// sign records which installation marks a condition as not true. It returns false if this
// installation must not write it.
func (w Writer) sign(condition apis.ConditionType) bool {
	if w.MustLeave(condition) {
		return false
	}
	if w.repository.Status.Annotations == nil {
		w.repository.Status.Annotations = map[string]string{}
	}
	w.repository.Status.Annotations[writerOf(condition)] = w.installation
	return true
}
