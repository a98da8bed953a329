// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/plumbline-ci/plumbline/pkg/config/podsecurity"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
	"github.com/plumbline-ci/plumbline/pkg/provider/web"
)

// Name is the default name of the ConfigMap, in Plumbline's own namespace.
const Name = "plumbline"

// The keys of the ConfigMap. Those that PaC has keep its names, meanings and defaults.
const (
	keyApplicationName  = "application-name"
	keySecretAutoCreate = "secret-auto-create"
	keyDashboardURL     = "tekton-dashboard-url"
	keyConsoleName      = "custom-console-name"
	keyConsoleURL       = "custom-console-url"
	keyConsoleRun       = "custom-console-url-pr-details"
	keyConsoleTask      = "custom-console-url-pr-tasklog"
	keyConsoleNamespace = "custom-console-url-namespace"
	keyResultsURL       = "tekton-results-url"
	keyGitHubURL        = "github-url"
	keyWebhookURL       = "webhook-url"
	keySkipPushOfPulls  = "skip-push-event-for-pr-commits"
	keyRetentionDays    = "settled-retention-days"
	keySettledCap       = "settled-cap"
	keyRemoteTasks      = "remote-tasks"
	keyHubURL           = "hub-url"
	keyHubCatalog       = "hub-catalog-name"
	keyRemoteAllowed    = "remote-allowed-hosts"
	keyRemoteRefused    = "remote-refused-hosts"
	keyShareGlobal      = "share-global-token"
	keyRunPermissions   = "run-token-permissions"
	keyTokenScoped      = "secret-github-app-token-scoped" //nolint:gosec // a key's name
	keyExtraRepos       = "secret-github-app-scope-extra-repos"
	keyGitAllowed       = "git-allowed-hosts"
	keyURLOwners        = "url-owners"
	keyRunAccounts      = "run-service-accounts"
	keyRunPodSecurity   = "run-pod-security"
	keyMembersMayRun    = "members-may-run"
	keyOpenEvents       = "open-events-cap"
	keyOpenPayloads     = "open-payloads-mebibytes"
	keyRequireSHA       = "require-ok-to-test-sha"
	keyRemember         = "remember-ok-to-test"
	keyKeepDefault      = "default-max-keep-runs"
	keyKeepLimit        = "max-keep-run-upper-limit"
	keyCancelPulls      = "enable-cancel-in-progress-on-pull-requests"
	keyCancelPushes     = "enable-cancel-in-progress-on-push"
	keyServeNamespaces  = "serve-namespaces"
	keyPipelinesAsCode  = "pipelines-as-code-url"
	keyRetries          = "infrastructure-retries"
	keyLogSnippet       = "error-log-snippet"
	keyLogLines         = "error-log-snippet-number-of-lines"
	keyDetect           = "error-detection-from-container-logs"
	keyDetectLines      = "error-detection-max-number-of-lines"
	keyDetectPattern    = "error-detection-simple-regexp"
)

const (
	publicGitHub = "https://github.com"
	publicHub    = "https://artifacthub.io"

	day = 24 * time.Hour
	// GitHub lets a delivery be redelivered for 3 days, GitHub Enterprise Server for 7
	// (docs.github.com, "Redelivering webhooks"); the day on top covers clocks and a delivery in
	// flight.
	publicRetentionDays     = 4
	enterpriseRetentionDays = 8
	maxRetentionDays        = 90

	// A stub with two runs takes 4 to 5 KB, so the default cap is 50 MB of etcd.
	defaultSettledCap = 10_000
	minSettledCap     = 100
	maxSettledCap     = 1_000_000

	// An unsettled event takes 5 to 20 KB without its payload, so by default 200 MB of etcd at
	// most. The payloads take 512 MiB. With the stubs that is less than half of the 2 GiB that etcd
	// has by default. One Repository may have a tenth of the events. That is twice the burst of 500
	// events that a merge queue or a bot causes.
	defaultOpenEvents = 10_000
	minOpenEvents     = 100
	maxOpenEvents     = 200_000
	// A tenth of the minimum holds the largest delivery: 25 MiB that do not compress are 34 MiB in
	// base64.
	defaultOpenPayloads = 512
	minOpenPayloads     = 350
	maxOpenPayloads     = 8192

	defaultLogLines = 3
	maxLogLines     = 200

	// maxNameLength keeps "<application> / <pipeline>" within what Git services show of a check's
	// name.
	maxNameLength = 100
)

// Config is the configuration of an installation. Treat it as read-only: it is shared.
type Config struct {
	// ApplicationName is the first part of the name of every check.
	ApplicationName string
	// SecretAutoCreate makes a git-auth Secret for each run.
	SecretAutoCreate bool
	// ShareGlobalToken lets runs clone with the token of the global Repository. The token is then
	// written into the namespaces of all tenants whose Repositories have no token.
	ShareGlobalToken bool
	// RunPermissions are what a Repository may grant to the tokens of its runs, beyond reading.
	RunPermissions Permissions
	// TokenScope says which other repositories the tokens of runs may reach.
	TokenScope TokenScope
	// GitHubURL is the web URL of the GitHub instance the App is registered at: scheme and host in
	// lower case, no path, no trailing slash. Deliveries that name another host are refused before
	// a credential is read.
	GitHubURL string
	// WebhookURL is the receivers' URL for Git services without an App, without a trailing slash.
	// Plumbline leaves webhooks with another URL alone. Empty means unknown.
	WebhookURL string
	// RunLimits are what authors' PipelineRuns may ask for, in every namespace.
	RunLimits podsecurity.Limits
	// GitAllowed are Git services that Repositories may name although their addresses are not
	// public.
	GitAllowed egress.Hosts
	// Owners says which namespaces may serve which URLs.
	Owners Owners
	// MembersMayRun lets members of a repository's organization or project start runs who cannot
	// write, as in PaC.
	MembersMayRun bool
	// SkipPushOfPulls ignores a push to the branch of an open pull request whose own event runs the
	// same commit.
	SkipPushOfPulls bool
	// RequireApprovedSHA refuses an approval that does not name a commit.
	RequireApprovedSHA bool
	// RememberApprovals extends an approval to later pushes of the pull request's author, unless
	// something has changed that it depended on (S22).
	RememberApprovals bool
	// Console is where people watch runs.
	Console Console
	// SettledRetention is how long the stub of a settled event is kept, at least as long as the
	// service redelivers.
	SettledRetention time.Duration
	// SettledCap is the maximum number of stubs.
	SettledCap int
	// Open limits the unsettled events of the installation.
	Open quota.Limits
	// Remote says from where references in annotations may be fetched.
	Remote Remote
	// Retention says how many finished runs are kept.
	Retention Retention
	// InfrastructureRetries is how many times a pipeline is started again after the cluster made it
	// fail, where the author does not say.
	InfrastructureRetries int
	// Namespaces are the namespaces whose Repositories are served.
	Namespaces Namespaces
	// PipelinesAsCode serves the other namespaces.
	PipelinesAsCode PipelinesAsCode
	// CancelInProgress says which older runs are cancelled where the author does not say.
	CancelInProgress CancelInProgress
	// LogSnippet says what checks show of the logs of failed steps.
	LogSnippet LogSnippet
	// ErrorDetection says which lines of logs become annotations on source lines.
	ErrorDetection ErrorDetection
}

// LogSnippet says what checks show of the logs of failed steps.
type LogSnippet struct {
	// Show is false if checks show nothing of logs.
	Show bool
	// Lines is how many lines a check shows of one step.
	Lines int
}

// Default returns the configuration of an empty ConfigMap.
func Default() *Config {
	return &Config{
		ApplicationName:  "Pipelines as Code CI",
		SecretAutoCreate: true,
		SkipPushOfPulls:  true,
		GitHubURL:        publicGitHub,
		SettledRetention: publicRetentionDays * day,
		SettledCap:       defaultSettledCap,
		Open:             quota.Limits{Events: defaultOpenEvents, Bytes: defaultOpenPayloads << 20},
		Remote:           Remote{Fetch: true, Hub: web.Hub{URL: publicHub}},
		// Most problems of one node or of one call do not hit the next attempt.
		InfrastructureRetries: 1,
		LogSnippet:            LogSnippet{Show: true, Lines: defaultLogLines},
		ErrorDetection:        defaultErrorDetection(),
	}
}

// New reads the data of the ConfigMap. A missing or empty key has its default. The error joins one
// line for each bad key: its name, what is wrong and what is allowed; that key keeps its default
// and all others apply, so the returned Config is never nil. Keys that start with "_" are
// documentation and ignored.
func New(data map[string]string) (*Config, error) {
	return parse(data, Default())
}

// TenantsGit returns which Git services may be called because a tenant names them. A host from
// which nothing may be fetched, such as a cluster network with public addresses, may not be called
// either.
func (c *Config) TenantsGit() egress.Policy {
	return egress.Policy{Allowed: c.GitAllowed, Refused: c.Remote.Refused}
}

// MaxWait returns how long an event waits for an operator, or for an object that its Git service
// does not show yet, before it is refused. It is the time in which the service redelivers, so that
// each redelivery finds a stub, and at most 7 days (S5).
func (c *Config) MaxWait() time.Duration {
	return min(c.SettledRetention-day, (enterpriseRetentionDays-1)*day)
}
