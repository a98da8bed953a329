// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/plumbline-ci/plumbline/pkg/config/podsecurity"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
	"github.com/plumbline-ci/plumbline/pkg/provider/web"
)

// Name is the ConfigMap's name, in Plumbline's own namespace.
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

	// An open event takes 5 to 20 KB beside its payloads, so the default is 200 MB of etcd at most,
	// and its payloads 512 MiB: with the stubs less than half of the 2 GiB that etcd has by
	// default. 500 events at once of one repository are a merge queue's or a robot's ordinary
	// burst; a tenth of the cap, which one Repository may have, is twice that.
	defaultOpenEvents = 10_000
	minOpenEvents     = 100
	maxOpenEvents     = 200_000
	// A tenth of the least is more than the largest delivery takes: 25 MiB that do not compress are
	// 34 in base64.
	defaultOpenPayloads = 512
	minOpenPayloads     = 350
	maxOpenPayloads     = 8192

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
	// ShareGlobalToken lets runs clone with the token of the global Repository: it is then written
	// into the namespaces of all tenants whose Repositories have none of their own.
	ShareGlobalToken bool
	// RunPermissions are the most that the tokens of runs may do, beyond what each has.
	RunPermissions Permissions
	// GitHubURL is the web URL of the GitHub instance the App is registered at: scheme and host in
	// lower case, no path, no trailing slash. Deliveries that name another host are refused before
	// a credential is read.
	GitHubURL string
	// WebhookURL is where Git services without an App call the receivers, without a trailing slash:
	// webhooks that lead elsewhere are somebody else's. Empty is unknown.
	WebhookURL string
	// Ceiling is what authors' PipelineRuns may ask for at most, in every namespace.
	RunLimits podsecurity.Limits
	// GitAllowed are Git services that Repositories may name although their addresses are not
	// public.
	GitAllowed egress.Hosts
	// Owners says whose URLs are whose, if a proof of that is asked for.
	Owners Owners
	// MembersMayRun lets members of a repository's organization or project start runs who cannot
	// write, as in PaC.
	MembersMayRun bool
	// SkipPushOfPulls ignores a push to the branch of an open pull request whose own event runs the
	// same commit.
	SkipPushOfPulls bool
	// RequireApprovedSHA lets nobody approve a commit without naming it.
	RequireApprovedSHA bool
	// RememberApprovals lets what the author of an approved pull request pushes later run by that
	// approval, unless something has changed that it depended on (S22).
	RememberApprovals bool
	// Console is where people watch runs.
	Console Console
	// SettledRetention is how long the stub of a settled event is kept, at least as long as the
	// service redelivers.
	SettledRetention time.Duration
	// SettledCap is the most stubs that are kept.
	SettledCap int
	// Open is what open events may use in total.
	Open quota.Limits
	// Remote says where references of authors may lead.
	Remote Remote
	// Keep says how many ended runs are kept.
	Retention Retention
	// Namespaces are those whose Repositories are served.
	Namespaces Namespaces
	// CancelInProgress says whose older runs end where the author says nothing.
	CancelInProgress CancelInProgress
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
	}
}

// New reads the data of the ConfigMap. A missing or empty key has its default. The error joins one
// line for each bad key: its name, what is wrong and what is allowed; that key keeps its default
// and all others apply, so the returned Config is never nil. Keys that start with "_" are
// documentation and ignored.
func New(data map[string]string) (*Config, error) {
	return parse(data, Default())
}

// TenantsGit says which Git services may be called because a tenant names them. What may never be
// fetched from, networks of the cluster that have public addresses for example, may not be called
// either.
func (c *Config) TenantsGit() egress.Policy {
	return egress.Policy{Allowed: c.GitAllowed, Refused: c.Remote.Refused}
}

// MaxWait is how long an event waits for an operator, or for what its Git service does not show,
// before it ends as refused: the time in which the service redelivers, so that a stub is there for
// each redelivery, and never more than 7 days (S5).
func (c *Config) MaxWait() time.Duration {
	return min(c.SettledRetention-day, (enterpriseRetentionDays-1)*day)
}
