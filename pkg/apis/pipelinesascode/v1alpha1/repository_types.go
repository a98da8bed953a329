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
type Repository struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RepositorySpec `json:"spec"`
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
// and meanings.
//
// +kubebuilder:validation:XValidation:rule="!has(self.url) || size(self.url) == 0 || self.url.startsWith('https://') || self.url.startsWith('http://')",message="spec.url: must start with http:// or https://"
type RepositorySpec struct {
	// URL is the web URL of the Git repository. It may be empty only in Plumbline's own namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
	// ConcurrencyLimit is how many PipelineRuns of the Repository may run at once; unset is
	// unlimited. A limit above 1,000 counts as 1,000. Plumbline creates a PipelineRun when it has a
	// slot: see docs/running.md.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ConcurrencyLimit *int `json:"concurrency_limit,omitempty"`
	// +optional
	GitProvider *GitProvider `json:"git_provider,omitempty"`
	// +optional
	Incomings *[]Incoming `json:"incoming,omitempty"`
	// +optional
	Params *[]Params `json:"params,omitempty"`
	// +optional
	Settings *Settings `json:"settings,omitempty"`
}

// GitProvider says where the repository is reached, and with which credentials, without a GitHub
// App.
type GitProvider struct {
	// +optional
	// +kubebuilder:validation:Enum=github;gitlab;bitbucket-datacenter;bitbucket-cloud;gitea;forgejo
	Type string `json:"type,omitempty"`
	// URL is the API or base URL. If it is empty, the service's public URL is used.
	// +optional
	URL string `json:"url,omitempty"`
	// +optional
	User string `json:"user,omitempty"`
	// Secret holds the API token. Its key is "provider.token" by default.
	// +optional
	Secret *Secret `json:"secret,omitempty"`
	// WebhookSecret holds the webhook's secret token. Its key is "webhook.secret" by default.
	// +optional
	WebhookSecret *Secret `json:"webhook_secret,omitempty"`
}

// Secret names a key of a Secret in the Repository's namespace.
type Secret struct {
	Name string `json:"name"`
	// +optional
	Key string `json:"key,omitempty"`
}

// Incoming allows a webhook call to start PipelineRuns.
type Incoming struct {
	// +kubebuilder:validation:Enum=webhook-url
	Type   string `json:"type"`
	Secret Secret `json:"secret"`
	// Params are the names of the parameters that a call may set.
	// +optional
	Params []string `json:"params,omitempty"`
	// Targets are globs of branches.
	// +optional
	Targets []string `json:"targets,omitempty"`
}

// Params is a custom template variable.
type Params struct {
	Name string `json:"name"`
	// +optional
	Value string `json:"value,omitempty"`
	// +optional
	SecretRef *Secret `json:"secret_ref,omitempty"`
	// Filter is a CEL expression. The variable has this value only for events for which the filter
	// is true.
	// +optional
	Filter string `json:"filter,omitempty"`
	// Untrusted also gives the value of secret_ref to runs of approved commits of untrusted users.
	// By default they do not get it. PaC has no such field.
	// +optional
	Untrusted bool `json:"untrusted,omitempty"`
}

// RepositoryStatus reports whether Plumbline serves events of the URL, and which runs have slots if
// there is a concurrency_limit.
type RepositoryStatus struct {
	// Status has the conditions URL and Credentials, aggregated in Ready.
	duckv1.Status `json:",inline"`
	// Running is how many slots are taken, Queued how many runs wait for one: the sums of Queues.
	// Both are absent without a limit.
	// +optional
	Running *int `json:"running,omitempty"`
	// +optional
	Queued *int `json:"queued,omitempty"`
	// Queues has one entry for each Plumbline installation on the cluster; usually there is one.
	// Each installation writes its own entry.
	// +optional
	// +listType=map
	// +listMapKey=installation
	Queues []Queue `json:"queues,omitempty"`
}
