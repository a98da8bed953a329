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
	// RepositoryCredentials means that the Git service and the cluster let Plumbline do what the
	// open events need.
	RepositoryCredentials apis.ConditionType = "Credentials"
	// RepositorySettings means that all fields that are set are acted on. It is no part of Ready:
	// the Repository is served.
	RepositorySettings apis.ConditionType = "Settings"
	// RepositoryBudget means that deliveries are recorded: open events have not used up what they
	// may keep in the API server. It is no part of Ready, and only Repositories whose deliveries
	// were refused have it.
	RepositoryBudget apis.ConditionType = "Budget"
	// RepositoryWebhookSecret means that the receivers know the secret that the webhook's
	// deliveries are verified with. It is no part of Ready, and absent where there never was a
	// problem.
	RepositoryWebhookSecret apis.ConditionType = "WebhookSecret"
	// RepositoryWebhook means that the Git service calls the project's webhook. It is Unknown where
	// that cannot be seen, and missed deliveries not be found. It is no part of Ready, and absent
	// where there never was a problem.
	RepositoryWebhook apis.ConditionType = "Webhook"
	// RepositoryPolicy means that the Git service shows the teams of settings.policy, as far as
	// events have asked. It is no part of Ready, and absent where there never was a problem.
	RepositoryPolicy apis.ConditionType = "Policy"
	// RepositorySlots means that no run has had a slot of the concurrency_limit for longer than an
	// hour. It is no part of Ready, and absent where there never was such a run.
	RepositorySlots apis.ConditionType = "Slots"
)

// GetConditionSet returns the dependents of Ready.
func (*Repository) GetConditionSet() apis.ConditionSet {
	return apis.NewLivingConditionSet(RepositoryURL, RepositoryCredentials)
}

// GetGroupVersionKind tells knative the kind.
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

// By returns the writer of an installation, which has the name of its namespace.
func (r *Repository) By(installation string) Writer { return Writer{r, installation} }

// Leaves reports whether this installation leaves a condition as it is, because another one on the
// cluster has said that it does not hold. If both wrote what they find they would overwrite each
// other for ever.
func (w Writer) Leaves(condition apis.ConditionType) bool {
	is, writer := w.repository.Status.GetCondition(condition), w.repository.Status.Annotations[writerOf(condition)]
	return is != nil && !is.IsTrue() && writer != "" && writer != w.installation
}

// writerOf is the annotation of the status with the installation that said that a condition does
// not hold.
func writerOf(condition apis.ConditionType) string { return "plumbline.dev/" + string(condition) }

// MarkTrue records that a condition holds, unless another installation says that it does not.
func (w Writer) MarkTrue(condition apis.ConditionType, reason, message string) {
	if w.Leaves(condition) {
		return
	}
	delete(w.repository.Status.Annotations, writerOf(condition))
	w.manage().MarkTrueWithReason(condition, reason, "%s", message)
}

// MarkFalse records what someone has to do something about, unless another installation has
// recorded something.
func (w Writer) MarkFalse(condition apis.ConditionType, reason, message string) {
	if w.sign(condition) {
		w.manage().MarkFalse(condition, reason, "%s", message)
	}
}

// MarkUnknown records what cannot be told, unless another installation has recorded something.
func (w Writer) MarkUnknown(condition apis.ConditionType, reason, message string) {
	if w.sign(condition) {
		w.manage().MarkUnknown(condition, reason, "%s", message)
	}
}

// Signed reports whether this installation has said that a condition does not hold.
func (w Writer) Signed(condition apis.ConditionType) bool {
	return w.repository.Status.Annotations[writerOf(condition)] == w.installation
}

// Withdraw takes back what this installation has said, because it does not serve the Repository any
// more. The URL is not served until another installation says that it is: what is not signed,
// others overwrite. Claimed is whether this installation still has a claim; without one, another
// installation may have said that it serves the URL.
func (w Writer) Withdraw(reason, message string, claimed bool) {
	for _, condition := range []apis.ConditionType{
		RepositorySettings, RepositoryBudget, RepositoryWebhookSecret, RepositoryWebhook, RepositoryPolicy, RepositorySlots,
	} {
		if w.Signed(condition) {
			delete(w.repository.Status.Annotations, writerOf(condition))
			_ = w.manage().ClearCondition(condition) // refused for what Ready depends on only
		}
	}
	if w.Signed(RepositoryCredentials) {
		w.MarkTrue(RepositoryCredentials, reason, message)
	}
	if w.Signed(RepositoryURL) || claimed && !w.Leaves(RepositoryURL) {
		delete(w.repository.Status.Annotations, writerOf(RepositoryURL))
		w.manage().MarkFalse(RepositoryURL, reason, "%s", message)
	}
}

func (w Writer) manage() apis.ConditionManager {
	return w.repository.GetConditionSet().Manage(&w.repository.Status)
}

// sign notes who writes a condition that does not hold; false is that nothing may be written.
func (w Writer) sign(condition apis.ConditionType) bool {
	if w.Leaves(condition) {
		return false
	}
	if w.repository.Status.Annotations == nil {
		w.repository.Status.Annotations = map[string]string{}
	}
	w.repository.Status.Annotations[writerOf(condition)] = w.installation
	return true
}
