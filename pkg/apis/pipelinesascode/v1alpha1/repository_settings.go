// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Settings changes how the repository's events are handled.
type Settings struct {
	// +optional
	GithubAppTokenScopeRepos []string `json:"github_app_token_scope_repos,omitempty"`
	// RunTokenPermissions are permissions at GitHub that the token of a run gets in addition to
	// reading the repository: names and levels of a GitHub App's permissions, for example
	// "pull_requests: write". The administrator limits them in run-token-permissions of the
	// ConfigMap. PaC has no such field.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	RunTokenPermissions map[string]PermissionLevel `json:"run_token_permissions,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum=source;default_branch
	PipelineRunProvenance string `json:"pipelinerun_provenance,omitempty"`
	// +optional
	GitOpsCommandPrefix string `json:"gitops_command_prefix,omitempty"`
	// TestAny lets a comment start any pipeline by its name, even when the definitions are those of
	// the default branch. Without it, a comment starts only pipelines for the event, and pipelines
	// without an event. PaC has no such field.
	// +optional
	TestAny *bool `json:"test_any,omitempty"`
	// Policy lists the teams that may act. Without it, every user with write access may.
	// +optional
	Policy *Policy `json:"policy,omitempty"`
	// Trusted are accounts and Apps that may start runs of their own pull requests as if they had
	// write access: "renovate[bot]", "dependabot[bot]", or the name of a bot's account. It gives
	// them nothing else. PaC has no such field.
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
	// UntrustedServiceAccount is the ServiceAccount of runs of approved commits of untrusted users;
	// the ServiceAccount in their definition is ignored. If it is empty, Tekton's default is used
	// (default-service-account in its ConfigMap config-defaults). PaC has no such field.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	UntrustedServiceAccount string `json:"untrusted_service_account,omitempty"`
	// RunCeiling limits what an author's PipelineRun may ask for. Without it, only the
	// installation's limits apply. PaC has no such field.
	// +optional
	RunCeiling *RunCeiling `json:"run_ceiling,omitempty"`
	// QueuePriority is a CEL expression with the variables of on-cel-expression. It returns a whole
	// number from -100 to 100. When runs wait because of concurrency_limit, each point counts as
	// five minutes of waiting. Unset is 0. PaC has no such field.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	QueuePriority string `json:"queue_priority,omitempty"`
}

// RunCeiling limits what the PipelineRuns of a Repository may ask the cluster for.
type RunCeiling struct {
	// ServiceAccounts are those that a PipelineRun may name; empty allows any. A PipelineRun that
	// names none gets Tekton's default.
	// +optional
	ServiceAccounts []string `json:"service_accounts,omitempty"`
	// PodSecurity is a level of the Pod Security Standards. Values that it forbids are refused;
	// empty forbids none.
	// +optional
	// +kubebuilder:validation:Enum=baseline;restricted
	PodSecurity string `json:"pod_security,omitempty"`
}

// PermissionLevel is the level of a permission.
//
// +kubebuilder:validation:Enum=read;write;admin
type PermissionLevel string

// Policy lists the teams that may act: at GitHub teams of the organization, by their slugs; at
// GitLab groups, by their full paths. When there is a policy and one of its lists is missing or
// empty, no user may do what that list is about.
type Policy struct {
	// OkToTest are the teams whose members may approve pull requests (/ok-to-test) and comment
	// /test and /retest.
	// +optional
	OkToTest []string `json:"ok_to_test,omitempty"`
	// PullRequest are the teams whose members may start runs with their pull requests, labels and
	// other comments.
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

// AIAnalysis configures the analysis of runs by a language model. Plumbline stores it and ignores
// it.
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

// ContextItems says what the model gets in addition to the prompt.
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

// ContainerLogs says how much of the logs the model gets.
type ContainerLogs struct {
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxLines int `json:"max_lines,omitempty"`
}
