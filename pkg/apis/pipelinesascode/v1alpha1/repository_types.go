// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// Repository says that the events of a repository run in its namespace.
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

// RepositorySpec has the fields of PaC's kind, with PaC's names, defaults and meanings.
//
// +kubebuilder:validation:XValidation:rule="!has(self.url) || size(self.url) == 0 || self.url.startsWith('https://') || self.url.startsWith('http://')",message="spec.url: must start with http:// or https://"
type RepositorySpec struct {
	// URL is the web URL of the repository. It may be empty in Plumbline's own namespace only.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
	// ConcurrencyLimit is the most PipelineRuns of the Repository that run at once; unset is
	// unlimited. More than 1,000 is as 1,000. Plumbline creates a PipelineRun when it has a slot:
	// see docs/running.md.
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

// GitProvider says where and with which credentials the repository is reached when no GitHub App
// is.
type GitProvider struct {
	// +optional
	// +kubebuilder:validation:Enum=github;gitlab;bitbucket-datacenter;bitbucket-cloud;gitea;forgejo
	Type string `json:"type,omitempty"`
	// URL is the API or base URL; the service's public one when empty.
	// +optional
	URL string `json:"url,omitempty"`
	// +optional
	User string `json:"user,omitempty"`
	// Secret holds the token; key "provider.token" unless told.
	// +optional
	Secret *Secret `json:"secret,omitempty"`
	// WebhookSecret holds the webhook's secret; key "webhook.secret" unless told.
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
	// Params are the names a call may set.
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
	// Filter is a CEL expression.
	// +optional
	Filter string `json:"filter,omitempty"`
	// Untrusted gives the value of secret_ref to runs of approved commits of strangers, too.
	// Without it they get none. Plumbline's own; PaC has no such field.
	// +optional
	Untrusted bool `json:"untrusted,omitempty"`
}

// Settings changes how the repository's events are handled.
type Settings struct {
	// +optional
	GithubAppTokenScopeRepos []string `json:"github_app_token_scope_repos,omitempty"`
	// RunTokenPermissions is what the token of a run may do at GitHub beyond reading the
	// repository: names and levels of a GitHub App's permissions, "pull_requests: write" for
	// example. No more is granted than the administrator allows in run-token-permissions of the
	// ConfigMap. Plumbline's own; PaC has no such field.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	RunTokenPermissions map[string]PermissionLevel `json:"run_token_permissions,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum=source;default_branch
	PipelineRunProvenance string `json:"pipelinerun_provenance,omitempty"`
	// +optional
	GitOpsCommandPrefix string `json:"gitops_command_prefix,omitempty"`
	// TestAny lets a comment start any pipeline by its name although the definitions are those of
	// the default branch. Without it that starts only those for the event and those without an
	// event. PaC has no such field.
	// +optional
	TestAny *bool `json:"test_any,omitempty"`
	// Policy lists the teams that may act, in the place of whoever can write.
	// +optional
	Policy *Policy `json:"policy,omitempty"`
	// Trusted are accounts and Apps that may start runs of their own pull requests as if they could
	// write: "renovate[bot]", "dependabot[bot]" or the name of a bot's account. They may do nothing
	// else by that. Plumbline's own; PaC has no such field.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_][A-Za-z0-9_.-]*(\[bot\])?$`
	Trusted []string `json:"trusted,omitempty"`
	// +optional
	Gitlab *GitlabSettings `json:"gitlab,omitempty"`
	// +optional
	Github *CommentSettings `json:"github,omitempty"`
	// +optional
	Forgejo *ForgejoSettings `json:"forgejo,omitempty"`
	// +optional
	AIAnalysis *AIAnalysis `json:"ai,omitempty"`
	// UntrustedServiceAccount is the ServiceAccount of runs of approved commits of strangers,
	// whatever their definition names; without it that is Tekton's default (default-service-account
	// in its ConfigMap config-defaults). Plumbline's own; PaC has no such field.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	UntrustedServiceAccount string `json:"untrusted_service_account,omitempty"`
	// RunCeiling is what an author's PipelineRun may ask for at most; without it that is only the
	// installation's ceiling. PaC has no such field.
	// +optional
	RunCeiling *RunCeiling `json:"run_ceiling,omitempty"`
	// QueuePriority is a CEL expression with the variables of on-cel-expression that gives a whole
	// number from -100 to 100. Where concurrency_limit has runs wait, each of it counts as five
	// minutes of waiting; unset is 0. Plumbline's own; PaC has no such field.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	QueuePriority string `json:"queue_priority,omitempty"`
}

// RunCeiling bounds what the PipelineRuns of a Repository ask the cluster for.
type RunCeiling struct {
	// ServiceAccounts are those that a PipelineRun may name; empty is any. One that names none has
	// Tekton's default.
	// +optional
	ServiceAccounts []string `json:"service_accounts,omitempty"`
	// PodSecurity is the level of the Pod Security Standards whose forbidden values are refused;
	// empty is none.
	// +optional
	// +kubebuilder:validation:Enum=baseline;restricted
	PodSecurity string `json:"pod_security,omitempty"`
}

// PermissionLevel is how much of a permission is asked for.
//
// +kubebuilder:validation:Enum=read;write;admin
type PermissionLevel string

// Policy lists the teams that may act: teams of the organization by their slugs at GitHub, groups
// by their full paths at GitLab. While there is a policy, a list that is missing or names no team
// lets nobody act.
type Policy struct {
	// OkToTest are the teams whose members may approve pull requests (/ok-to-test) and write /test
	// and /retest.
	// +optional
	OkToTest []string `json:"ok_to_test,omitempty"`
	// PullRequest are the teams whose members' pull requests, labels and other comments start runs.
	// +optional
	PullRequest []string `json:"pull_request,omitempty"`
}

// CommentSettings says how comments are used.
type CommentSettings struct {
	// +optional
	// +kubebuilder:validation:Enum="";disable_all;update
	CommentStrategy string `json:"comment_strategy,omitempty"`
}

// GitlabSettings are the settings of GitLab repositories.
type GitlabSettings struct {
	CommentSettings `json:",inline"`
	// +optional
	TokenAutoRotation *bool `json:"token_auto_rotation,omitempty"`
}

// ForgejoSettings are the settings of Gitea and Forgejo repositories.
type ForgejoSettings struct {
	CommentSettings `json:",inline"`
	// +optional
	UserAgent string `json:"user_agent,omitempty"`
}

// AIAnalysis configures the analysis of runs by a language model. Plumbline carries it and does not
// act on it.
type AIAnalysis struct {
	Enabled bool `json:"enabled"`
	// +kubebuilder:validation:Enum=openai;gemini
	Provider string `json:"provider"`
	// +optional
	APIURL    string  `json:"api_url,omitempty"`
	SecretRef *Secret `json:"secret_ref"`
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=300
	TimeoutSeconds int `json:"timeout_seconds,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4000
	MaxTokens int `json:"max_tokens,omitempty"`
	// +kubebuilder:validation:MinItems=1
	// +listType=map
	// +listMapKey=name
	Roles []AnalysisRole `json:"roles"`
}

// AnalysisRole is one prompt.
type AnalysisRole struct {
	Name   string `json:"name"`
	Prompt string `json:"prompt"`
	// +optional
	Model string `json:"model,omitempty"`
	// +optional
	OnCEL string `json:"on_cel,omitempty"`
	// +optional
	// +kubebuilder:default=pr-comment
	// +kubebuilder:validation:Enum=pr-comment
	Output string `json:"output,omitempty"`
	// +optional
	ContextItems *ContextItems `json:"context_items,omitempty"`
}

// ContextItems says what a prompt is given.
type ContextItems struct {
	// +optional
	CommitContent bool `json:"commit_content,omitempty"`
	// +optional
	PRContent bool `json:"pr_content,omitempty"`
	// +optional
	ErrorContent bool `json:"error_content,omitempty"`
	// +optional
	ContainerLogs *ContainerLogs `json:"container_logs,omitempty"`
}

// ContainerLogs says how much of the logs a prompt is given.
type ContainerLogs struct {
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxLines int `json:"max_lines,omitempty"`
}

// RepositoryStatus reports whether events of the URL are served, and who runs where not all may run
// at once.
type RepositoryStatus struct {
	// Status carries the conditions URL and Credentials, aggregated in Ready.
	duckv1.Status `json:",inline"`
	// Running is how many slots are taken, Queued how many runs wait for one: the sums of Queues.
	// Both are absent without a limit.
	// +optional
	Running *int `json:"running,omitempty"`
	// +optional
	Queued *int `json:"queued,omitempty"`
	// Queues are those of the installations of Plumbline on the cluster, of which there is one as a
	// rule. Each writes its own.
	// +optional
	// +listType=map
	// +listMapKey=installation
	Queues []Queue `json:"queues,omitempty"`
}
