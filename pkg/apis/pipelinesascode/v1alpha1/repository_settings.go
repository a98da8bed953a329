// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Settings changes how the repository's events are handled.
type Settings struct {
	// Other repositories at GitHub that the token of a run reaches, and whose Tasks and Pipelines
	// may be referred to: globs of owner/repo, each of which must match the URL of a Repository of
	// this namespace. The administrator allows such lists in secret-github-app-token-scoped of the
	// ConfigMap plumbline. Runs of forks and of approved commits do not get them.
	// +optional
	GithubAppTokenScopeRepos []string `json:"github_app_token_scope_repos,omitempty"`
	// Permissions at GitHub that the token of a run gets in addition to reading the repository:
	// names and levels of a GitHub App's permissions, for example "pull_requests: write". The
	// administrator limits them in run-token-permissions of the ConfigMap plumbline.
	// Pipelines-as-Code has no such field.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	RunTokenPermissions map[string]PermissionLevel `json:"run_token_permissions,omitempty"`
	// From which commit the .tekton directory is read: source reads it at the commit of the event,
	// default_branch at the head of the default branch. The default is source.
	// +optional
	// +kubebuilder:validation:Enum=source;default_branch
	PipelineRunProvenance string `json:"pipelinerun_provenance,omitempty"`
	// One word that commands in comments begin with. With the value ci, /ci test is a command, and
	// /test is not.
	// +optional
	GitOpsCommandPrefix string `json:"gitops_command_prefix,omitempty"`
	// Whether the comment /test NAME may start any pipeline, even when the definitions are those of
	// the default branch. By default, it then starts only pipelines for the event, and pipelines
	// without an event. Pipelines-as-Code has no such field.
	// +optional
	TestAny *bool `json:"test_any,omitempty"`
	// The teams that may act. Without it, every user with write access may.
	// +optional
	Policy *Policy `json:"policy,omitempty"`
	// Accounts and Apps that may start runs of their own pull requests as if they had write access:
	// "renovate[bot]", "dependabot[bot]", or the name of a bot's account. They get no other right.
	// Pipelines-as-Code has no such field.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_][A-Za-z0-9_.-]*(\[bot\])?$`
	Trusted []string `json:"trusted,omitempty"`
	// Settings for repositories at GitLab.
	// +optional
	Gitlab *GitlabSettings `json:"gitlab,omitempty"`
	// Settings for repositories at GitHub.
	// +optional
	Github *CommentSettings `json:"github,omitempty"`
	// Not acted on by Plumbline. In Pipelines-as-Code: settings for repositories at Gitea and
	// Forgejo.
	// +optional
	Forgejo *ForgejoSettings `json:"forgejo,omitempty"`
	// Not acted on by Plumbline. In Pipelines-as-Code: the analysis of runs by a language model.
	// +optional
	AIAnalysis *AIAnalysis `json:"ai,omitempty"`
	// The ServiceAccount of runs of approved commits of untrusted users; the ServiceAccount in
	// their definition is ignored. Without it, they get Tekton's default (default-service-account
	// in its ConfigMap config-defaults). Pipelines-as-Code has no such field.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	UntrustedServiceAccount string `json:"untrusted_service_account,omitempty"`
	// Limits for what an author's PipelineRun may ask the cluster for. Without it, only the limits
	// of the installation apply. Pipelines-as-Code has no such field.
	// +optional
	RunCeiling *RunCeiling `json:"run_ceiling,omitempty"`
	// A CEL expression with the variables of on-cel-expression that returns a whole number from
	// -100 to 100. When runs wait because of concurrency_limit, each point counts as five minutes
	// of waiting. The default is 0. Pipelines-as-Code has no such field.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	QueuePriority string `json:"queue_priority,omitempty"`
	// Which pipelines that an event does not start get a check that concludes as skipped, so that a
	// required check does not stay pending. With skipped, those that only their path filter
	// excludes. With all, every pipeline whose annotations do not match the event. By default,
	// none. Pipelines-as-Code has no such field.
	// +optional
	// +kubebuilder:validation:Enum=skipped;all
	Unmatched Unmatched `json:"unmatched,omitempty"`
	// The field of Pipelines-as-Code with the meaning of unmatched. It has no effect if unmatched
	// is set.
	// +optional
	StatusCheck *StatusCheck `json:"status_check,omitempty"`
}

// Which pipelines that an event does not start get a check.
type Unmatched string

const (
	// UnmatchedPaths is for pipelines that only their path filter excludes.
	UnmatchedPaths Unmatched = "skipped"
	// UnmatchedAll is for every pipeline whose annotations do not match.
	UnmatchedAll Unmatched = "all"
)

// StatusCheck says whether pipelines that an event does not start get a check.
type StatusCheck struct {
	// With true, each pipeline whose annotations do not match the event gets a check that concludes
	// as skipped, as with unmatched: all.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// The only mode is per_unmatched_pipelinerun: one check for each pipeline.
	// +optional
	// +kubebuilder:validation:Enum=per_unmatched_pipelinerun
	Mode string `json:"mode,omitempty"`
}

// ChecksOfUnmatched returns which pipelines that an event does not start get a check, "" for none.
func (s *Settings) ChecksOfUnmatched() Unmatched {
	switch {
	case s == nil:
		return ""
	case s.Unmatched == "" && s.StatusCheck != nil && s.StatusCheck.Enabled:
		return UnmatchedAll
	}
	return s.Unmatched
}

// RunCeiling limits what the PipelineRuns of a Repository may ask the cluster for.
type RunCeiling struct {
	// The ServiceAccounts that a PipelineRun may name. Without it, any is allowed. A PipelineRun
	// that names none gets Tekton's default.
	// +optional
	ServiceAccounts []string `json:"service_accounts,omitempty"`
	// A level of the Pod Security Standards: what it forbids is refused. Without it, nothing is.
	// +optional
	// +kubebuilder:validation:Enum=baseline;restricted
	PodSecurity string `json:"pod_security,omitempty"`
}

// The level of a permission.
//
// +kubebuilder:validation:Enum=read;write;admin
type PermissionLevel string

// Policy lists the teams that may act: at GitHub teams of the organization, by their slugs; at
// GitLab groups, by their full paths. When there is a policy and one of its lists is missing or
// empty, no user may do what that list is about.
type Policy struct {
	// The teams whose members may approve pull requests (/ok-to-test) and comment /test and
	// /retest: slugs of GitHub's teams, full paths of GitLab's groups. A missing or empty list
	// denies everyone.
	// +optional
	OkToTest []string `json:"ok_to_test,omitempty"`
	// The teams whose members may start runs with their pull requests, labels and other comments:
	// slugs of GitHub's teams, full paths of GitLab's groups. A missing or empty list denies
	// everyone.
	// +optional
	PullRequest []string `json:"pull_request,omitempty"`
}

const (
	// CommentsDisabled is the CommentStrategy that writes no comments about results.
	CommentsDisabled = "disable_all"
	// CommentsOnFailure is the CommentStrategy that lists failed pipelines in a comment.
	CommentsOnFailure = "on_failure"
)

// CommentSettings says how comments are used.
type CommentSettings struct {
	// Whether results are written as comments where the Git service accepts no status, which is on
	// GitLab's merge requests from forks. "disable_all" writes none, and the results are then shown
	// nowhere. Empty and "update" write one comment for each pipeline and edit it. On GitHub an App
	// reports results with checks. Without an App, the comments have the tasks and logs of results,
	// which are commit statuses. Unless it is "disable_all", errors in the files of .tekton are
	// listed in one comment on the pull request. "on_failure" (not in Pipelines-as-Code) also lists
	// the failed pipelines of a pull request in one comment; without an App, it writes only the
	// comments of failed pipelines instead. Commands are answered in any case.
	// +optional
	// +kubebuilder:validation:Enum="";disable_all;update;on_failure
	CommentStrategy string `json:"comment_strategy,omitempty"`
}

// GitlabSettings are the settings of GitLab repositories.
type GitlabSettings struct {
	CommentSettings `json:",inline"`
	// Not acted on by Plumbline. In Pipelines-as-Code: whether the API token is renewed before it
	// expires.
	// +optional
	TokenAutoRotation *bool `json:"token_auto_rotation,omitempty"`
}

// ForgejoSettings are the settings of Gitea and Forgejo repositories.
type ForgejoSettings struct {
	CommentSettings `json:",inline"`
	// The User-Agent of calls to the Git service.
	// +optional
	UserAgent string `json:"user_agent,omitempty"`
}

// AIAnalysis configures the analysis of runs by a language model. Plumbline stores it and ignores
// it.
type AIAnalysis struct {
	// Whether runs are analysed.
	Enabled bool `json:"enabled"`
	// The service that has the model.
	// +kubebuilder:validation:Enum=openai;gemini
	Provider string `json:"provider"`
	// The URL of the service. Without it, the public service is used.
	// +optional
	APIURL string `json:"api_url,omitempty"`
	// The key of a Secret that has the service's token.
	SecretRef *Secret `json:"secret_ref"`
	// How many seconds one analysis may take.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=300
	TimeoutSeconds int `json:"timeout_seconds,omitempty"`
	// How many tokens one answer may have.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4000
	MaxTokens int `json:"max_tokens,omitempty"`
	// The prompts, and when each is used.
	// +kubebuilder:validation:MinItems=1
	// +listType=map
	// +listMapKey=name
	Roles []AnalysisRole `json:"roles"`
}

// One prompt.
type AnalysisRole struct {
	// The name of the prompt.
	Name string `json:"name"`
	// The text of the prompt.
	Prompt string `json:"prompt"`
	// The model that gets the prompt. Without it, the service's default is used.
	// +optional
	Model string `json:"model,omitempty"`
	// A CEL expression: the prompt is used for the runs for which it is true.
	// +optional
	OnCEL string `json:"on_cel,omitempty"`
	// Where the answer is written.
	// +optional
	// +kubebuilder:default=pr-comment
	// +kubebuilder:validation:Enum=pr-comment
	Output string `json:"output,omitempty"`
	// What the model gets in addition to the prompt.
	// +optional
	ContextItems *ContextItems `json:"context_items,omitempty"`
}

// ContextItems says what the model gets in addition to the prompt.
type ContextItems struct {
	// Whether the model gets the commit.
	// +optional
	CommitContent bool `json:"commit_content,omitempty"`
	// Whether the model gets the pull request.
	// +optional
	PRContent bool `json:"pr_content,omitempty"`
	// Whether the model gets the errors of the run.
	// +optional
	ErrorContent bool `json:"error_content,omitempty"`
	// How much of the logs the model gets.
	// +optional
	ContainerLogs *ContainerLogs `json:"container_logs,omitempty"`
}

// ContainerLogs says how much of the logs the model gets.
type ContainerLogs struct {
	// Whether the model gets logs.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// How many lines of each log the model gets.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxLines int `json:"max_lines,omitempty"`
}
