// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// Repository makes Plumbline run the events of one Git repository in this namespace.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=repositories,scope=Namespaced,shortName=repo
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.url`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.running`
// +kubebuilder:printcolumn:name="Queued",type=integer,JSONPath=`.status.queued`
// +kubebuilder:printcolumn:name="Last",type=string,JSONPath=`.status.recent[0].outcome`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Repository struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which Git repository is served, and how its events are handled.
	Spec RepositorySpec `json:"spec"`
	// Whether Plumbline serves events of the URL, and which runs have slots if there is a
	// concurrency_limit.
	// +optional
	Status RepositoryStatus `json:"status,omitempty"`
}

// RepositoryList is a list of Repositories.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type RepositoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Repository `json:"items"`
}

// RepositorySpec has the fields of the kind of Pipelines-as-Code (PaC), with PaC's names, defaults
// and meanings. The comments of the fields are what kubectl explain prints.
//
// +kubebuilder:validation:XValidation:rule="!has(self.url) || size(self.url) == 0 || self.url.startsWith('https://') || self.url.startsWith('http://')",message="spec.url: must start with http:// or https://"
type RepositorySpec struct {
	// The web URL of the Git repository whose events run in this namespace, for example
	// https://github.com/acme/app. It may be empty only in Plumbline's own namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
	// How many PipelineRuns of the Repository may run at once. Without it, there is no limit. A
	// value above 1,000 counts as 1,000. The other runs wait, and Plumbline creates their
	// PipelineRuns when they have a slot.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ConcurrencyLimit *int `json:"concurrency_limit,omitempty"`
	// Where the Git service is reached, and with which credentials. A repository that uses the
	// GitHub App does not need it.
	// +optional
	GitProvider *GitProvider `json:"git_provider,omitempty"`
	// Which calls of POST /incoming start PipelineRuns without a Git event. The first rule whose
	// targets match the branch decides; at most 64 rules are read. Without rules of its own, the
	// Repository has those of the global Repository.
	// +optional
	Incomings *[]Incoming `json:"incoming,omitempty"`
	// Custom template variables: a placeholder with the name stands for the value in .tekton files.
	// +optional
	Params *[]Params `json:"params,omitempty"`
	// How the events of the repository are handled.
	// +optional
	Settings *Settings `json:"settings,omitempty"`
}

// GitProvider says where the repository is reached, and with which credentials, without a GitHub
// App.
type GitProvider struct {
	// The Git service. Plumbline serves github and gitlab; the others are accepted for
	// compatibility, and their events start nothing.
	// +optional
	// +kubebuilder:validation:Enum=github;gitlab;bitbucket-datacenter;bitbucket-cloud;gitea;forgejo
	Type string `json:"type,omitempty"`
	// The base URL of the Git service, for example https://gitlab.example.com. Without it, the
	// public service is used.
	// +optional
	URL string `json:"url,omitempty"`
	// The user name that belongs to the token, for services that need one.
	// +optional
	User string `json:"user,omitempty"`
	// The key of a Secret that has the API token. The default of key is provider.token.
	// +optional
	Secret *Secret `json:"secret,omitempty"`
	// The key of a Secret that has the webhook's secret token. The default of key is
	// webhook.secret. On GitHub, a Repository that names it and secret is served by its webhook and
	// not by the GitHub App.
	// +optional
	WebhookSecret *Secret `json:"webhook_secret,omitempty"`
}

// Secret names a key of a Secret in the Repository's namespace.
type Secret struct {
	// The name of the Secret, in the namespace of the Repository.
	Name string `json:"name"`
	// The key in the Secret whose value is used.
	// +optional
	Key string `json:"key,omitempty"`
}

// One rule for HTTP calls that start PipelineRuns.
type Incoming struct {
	// The kind of the rule.
	// +kubebuilder:validation:Enum=webhook-url
	Type string `json:"type"`
	// The key of a Secret that has the secret of the calls. The default of key is secret. For rules
	// of the global Repository, it is a Secret of the global Repository's namespace.
	Secret Secret `json:"secret"`
	// The names of the template variables that a call may set.
	// +optional
	Params []string `json:"params,omitempty"`
	// The branches that a call may name, as globs. A target that begins with ^ is a regular
	// expression.
	// +optional
	Targets []string `json:"targets,omitempty"`
}

// One custom template variable.
type Params struct {
	// The name of the variable, as in its placeholder.
	Name string `json:"name"`
	// The value of the variable.
	// +optional
	Value string `json:"value,omitempty"`
	// The key of a Secret that has the value. The value is masked in reports.
	// +optional
	SecretRef *Secret `json:"secret_ref,omitempty"`
	// A CEL expression with the variables of on-cel-expression. The variable has this value only
	// for events for which the expression is true.
	// +optional
	Filter string `json:"filter,omitempty"`
	// Whether runs of approved commits of untrusted users get the value of secret_ref, too. The
	// default is false. Pipelines-as-Code has no such field.
	// +optional
	Untrusted bool `json:"untrusted,omitempty"`
}

// RepositoryStatus reports whether Plumbline serves events of the URL, and which runs have slots if
// there is a concurrency_limit.
type RepositoryStatus struct {
	// Status has the conditions. Ready sums up URL and Credentials.
	duckv1.Status `json:",inline"`
	// How many runs have a slot: the sum over queues. It is absent without a concurrency_limit.
	// +optional
	Running *int `json:"running,omitempty"`
	// How many runs wait for a slot: the sum over queues. It is absent without a concurrency_limit.
	// +optional
	Queued *int `json:"queued,omitempty"`
	// The slots and waiting runs of each Plumbline installation on the cluster; usually there is
	// one. Each installation writes its own entry.
	// +optional
	// +listType=map
	// +listMapKey=installation
	Queues []Queue `json:"queues,omitempty"`
	// The last ten events of the Git repository, the newest first, and what Plumbline did about
	// each. Comments that have started nothing are left out.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=event
	Recent []RecentEvent `json:"recent,omitempty"`
}
