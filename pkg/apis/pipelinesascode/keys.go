// SPDX-License-Identifier: Apache-2.0

package pipelinesascode

// Definitions is the directory in which authors keep their pipelines.
const Definitions = ".tekton"

// Labels and annotations on PipelineRuns that PaC's users and tools read, and the
// annotations authors write. All share the prefix of the group.
const (
	prefix = GroupName + "/"

	URLOrg           = prefix + "url-org"
	URLRepository    = prefix + "url-repository"
	SHA              = prefix + "sha"
	SHATitle         = prefix + "sha-title"
	SHAURL           = prefix + "sha-url"
	RepoURL          = prefix + "repo-url"
	SourceRepoURL    = prefix + "source-repo-url"
	Sender           = prefix + "sender"
	EventType        = prefix + "event-type"
	Branch           = prefix + "branch"
	SourceBranch     = prefix + "source-branch"
	Repository       = prefix + "repository"
	GitProvider      = prefix + "git-provider"
	SecretCreated    = prefix + "secret-created"
	ControllerInfo   = prefix + "controller-info"
	PullRequest      = prefix + "pull-request"
	InstallationID   = prefix + "installation-id"
	GHEURL           = prefix + "ghe-url"
	CloneURL         = prefix + "clone-url"
	OriginalPRName   = prefix + "original-prname"
	GitAuthSecret    = prefix + "git-auth-secret"
	State            = prefix + "state"
	LogURL           = prefix + "log-url"
	CheckRunID       = prefix + "check-run-id"
	GitLabPipelineID = prefix + "gitlab-pipeline-id"
	SourceProjectID  = prefix + "source-project-id"
	TargetProjectID  = prefix + "target-project-id"
	ExecutionOrder   = prefix + "execution-order"
	StartReported    = prefix + "scm-reporting-plr-started"
	CancelInProgress = prefix + "cancel-in-progress"
	MaxKeepRuns      = prefix + "max-keep-runs"
	OnEvent          = prefix + "on-event"
	OnTargetBranch   = prefix + "on-target-branch"
	ManagedByLabel   = "app.kubernetes.io/managed-by"
	VersionLabel     = "app.kubernetes.io/version"
	ManagedBy        = GroupName
	StateStarted     = "started"
	StateCompleted   = "completed"
)

// Annotations that say when a pipeline starts, in addition to OnEvent and OnTargetBranch.
const (
	OnPathChange       = prefix + "on-path-change"
	OnPathChangeIgnore = prefix + "on-path-change-ignore"
	OnLabel            = prefix + "on-label"
	OnComment          = prefix + "on-comment"
	OnCELExpression    = prefix + "on-cel-expression"
	TargetNamespace    = prefix + "target-namespace"
)

// Written returns the keys of the annotations that Plumbline or Pipelines-as-Code writes to
// PipelineRuns.
func Written() []string {
	return []string{
		URLOrg, URLRepository, SHA, SHATitle, SHAURL, RepoURL, SourceRepoURL, Sender, EventType, Branch, SourceBranch,
		Repository, GitProvider, SecretCreated, ControllerInfo, PullRequest, InstallationID, GHEURL, CloneURL,
		OriginalPRName, GitAuthSecret, State, LogURL, CheckRunID, GitLabPipelineID, SourceProjectID, TargetProjectID,
		ExecutionOrder, StartReported,
	}
}
