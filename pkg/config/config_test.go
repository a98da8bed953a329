// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/config/podsecurity"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
	"github.com/plumbline-ci/plumbline/pkg/provider/web"
)

func TestNew(t *testing.T) {
	with := func(change func(*Config)) *Config {
		c := Default()
		change(c)
		return c
	}
	for name, test := range map[string]struct {
		data map[string]string
		want *Config
		errs []string // one for each line of the error, in order: what the line must hold
	}{
		"an empty ConfigMap has the defaults": {want: Default()},
		"an empty value is the default, documentation is ignored": {
			data: map[string]string{"application-name": " ", "_example": "anything"},
			want: Default(),
		},
		"every key is read": {
			data: map[string]string{
				"application-name": "Acme CI", "secret-auto-create": "false", "skip-push-event-for-pr-commits": "false",
				"require-ok-to-test-sha": "true", "remember-ok-to-test": "true", "github-url": "https://GHE.example.com/",
				"settled-retention-days": "10", "settled-cap": "500", "open-events-cap": "2000", "open-payloads-mebibytes": "1024",
				"tekton-dashboard-url": "https://dash.example.com/tekton/",
				"custom-console-name":  "Lens", "custom-console-url": "https://lens.example.com",
				"custom-console-url-pr-details": "https://lens.example.com/{{ namespace }}/{{pr}}",
				"custom-console-url-pr-tasklog": "https://lens.example.com/{{ task }}",
				"custom-console-url-namespace":  "https://lens.example.com/{{ namespace }}",
				"tekton-results-url":            "https://lens.example.com/{{ uid }}",
				"remote-tasks":                  "false", "hub-url": "https://hub.example.com/api/v1/", "hub-catalog-name": "ours",
				"catalog-2-id": "acme", "catalog-2-name": "acme-tasks", "catalog-2-url": "http://hub.acme.svc:8080",
				"share-global-token": "true", "members-may-run": "true",
				"run-token-permissions": "pull_requests: write,packages:read, ", "secret-github-app-token-scoped": "false",
				"remote-allowed-hosts": "Git.example.com, 10.0.0.0/8,", "remote-refused-hosts": "*.corp.example.com",
				"git-allowed-hosts": "gitlab.corp.example.com", "run-service-accounts": "builder, tester",
				"run-pod-security":      "baseline",
				"default-max-keep-runs": "5", "max-keep-run-upper-limit": "50",
				"enable-cancel-in-progress-on-pull-requests": "true", "enable-cancel-in-progress-on-push": "true",
				"infrastructure-retries": "3",
				"error-log-snippet":      "false", "error-log-snippet-number-of-lines": "7",
				"error-detection-from-container-logs": "false", "error-detection-max-number-of-lines": "-1",
				"error-detection-simple-regexp": `^(?P<error>.*) at (?P<filename>[^:]+):(?P<line>\d+)$`,
			},
			want: &Config{
				InfrastructureRetries: 3,
				Retention:             Retention{Default: 5, Limit: 50},
				CancelInProgress:      CancelInProgress{PullRequests: true, Pushes: true},
				LogSnippet:            LogSnippet{Lines: 7},
				ErrorDetection: ErrorDetection{
					Lines: 10_000, Pattern: regexp.MustCompile(`^(?P<error>.*) at (?P<filename>[^:]+):(?P<line>\d+)$`),
				},
				RequireApprovedSHA: true, RememberApprovals: true, GitAllowed: egress.Hosts{"gitlab.corp.example.com"},
				RunLimits: podsecurity.Limits{ServiceAccounts: []string{"builder", "tester"}, PodSecurity: podsecurity.Baseline},
				Remote: Remote{
					Hub:      web.Hub{URL: "https://hub.example.com/api/v1", Catalog: "ours"},
					Catalogs: map[string]web.Hub{"acme": {URL: "http://hub.acme.svc:8080", Catalog: "acme-tasks"}},
					Allowed:  egress.Hosts{"git.example.com", "10.0.0.0/8"}, Refused: egress.Hosts{"*.corp.example.com"},
				},
				ShareGlobalToken: true, MembersMayRun: true,
				RunPermissions:  Permissions{"pull_requests": "write", "packages": "read"},
				TokenScope:      TokenScope{Lists: true},
				ApplicationName: "Acme CI", GitHubURL: "https://ghe.example.com", SettledRetention: 240 * time.Hour,
				SettledCap: 500,
				Open:       quota.Limits{Events: 2000, Bytes: 1 << 30},
				Console: Console{
					dashboard: "https://dash.example.com/tekton", name: "Lens", url: "https://lens.example.com",
					run: "https://lens.example.com/{{ namespace }}/{{pr}}", task: "https://lens.example.com/{{ task }}",
					namespace: "https://lens.example.com/{{ namespace }}", results: "https://lens.example.com/{{ uid }}",
				},
			},
		},
		"an Enterprise Server redelivers for 7 days, so stubs are kept for 8": {
			data: map[string]string{"github-url": "http://127.0.0.1:8443"},
			want: with(func(c *Config) { c.GitHubURL = "http://127.0.0.1:8443"; c.SettledRetention = 192 * time.Hour }),
		},
		"a retention below the service's redelivery window is refused and the window is used": {
			data: map[string]string{"github-url": "https://ghe.example.com", "settled-retention-days": "4"},
			want: with(func(c *Config) { c.GitHubURL = "https://ghe.example.com"; c.SettledRetention = 192 * time.Hour }),
			errs: []string{
				`key "settled-retention-days": "4" is out of range or not a number; allowed: a whole number from 8 to 90`,
			},
		},
		"a catalog that is not complete, cannot be referred to or has another's id is left out": {
			data: map[string]string{
				"catalog-1-id": "acme", "catalog-1-name": "x",
				"catalog-2-id": "HTTPS", "catalog-2-name": "x", "catalog-2-url": "https://hub.example.com",
				"catalog-3-id": "one", "catalog-3-name": "x", "catalog-3-url": "https://hub.example.com",
				"catalog-4-id": "one", "catalog-4-name": "y", "catalog-4-url": "https://hub.example.com",
				"remote-allowed-hosts": "10.0.0.0/99",
			},
			want: with(func(c *Config) {
				c.Remote.Catalogs = map[string]web.Hub{"one": {URL: "https://hub.example.com", Catalog: "x"}}
			}),
			errs: []string{
				`key "catalog-1-id": the catalog is not complete`, `key "catalog-2-id": it cannot stand in front of ://`,
				`key "catalog-4-id": another catalog has this id`, `key "remote-allowed-hosts": "10.0.0.0/99" is not`,
			},
		},
		"each bad key is named with what is allowed, and the others apply": {
			data: map[string]string{
				"application-name": "Acme CI", "secret-auto-create": "maybe", "settled-cap": "1", "open-events-cap": "99",
				"open-payloads-mebibytes": "1", "tekton-dashboard-url": "dash.example.com",
				"default-max-keep-runs": "-1", "infrastructure-retries": "4",
				"error-log-snippet-number-of-lines": "0",
			},
			want: with(func(c *Config) { c.ApplicationName = "Acme CI" }),
			errs: []string{
				`key "secret-auto-create": "maybe" is not a boolean; allowed: "true" or "false"`,
				`key "settled-cap": "1" is out of range or not a number; allowed: a whole number from 100 to 1000000`,
				`key "tekton-dashboard-url": it is not an absolute web URL; allowed: an absolute URL`,
				`key "open-events-cap": "99" is out of range or not a number; allowed: a whole number from 100 to 200000`,
				`key "open-payloads-mebibytes": "1" is out of range or not a number; allowed: a whole number from 350 to 8192`,
				`key "default-max-keep-runs": "-1" is out of range or not a number; allowed: a whole number from 0 to 1000000`,
				`key "infrastructure-retries": "4" is out of range or not a number; allowed: a whole number from 0 to 3`,
				`key "error-log-snippet-number-of-lines": "0" is out of range or not a number; allowed: a whole number from 1 to 200`,
			},
		},
		"a permission without a level, or with another one, grants nothing": {
			data: map[string]string{"run-token-permissions": "packages: read, checks: yes"},
			want: Default(),
			errs: []string{`key "run-token-permissions": "checks: yes" is not a permission; allowed: GitHub's names`},
		},
		"a misspelt key is reported with the keys there are": {
			data: map[string]string{"app-name": "Acme CI"},
			want: Default(),
			errs: []string{`key "app-name": this version does not read it; allowed: application-name, custom-console-name`},
		},
		"a GitHub URL with a path, a user, another scheme is refused": {
			data: map[string]string{"github-url": "https://github.com/acme"},
			want: Default(),
			errs: []string{`key "github-url": it has a path`},
		},
		"a template must be a web URL once its variables are replaced": {
			data: map[string]string{
				"custom-console-url-pr-details": "{{ namespace }}/x", "custom-console-url-namespace": "javascript:x",
			},
			want: Default(),
			errs: []string{
				`key "custom-console-url-pr-details": it is not a web URL`, `key "custom-console-url-namespace": it is not`,
			},
		},
		"a name with a line break is refused": {
			data: map[string]string{"application-name": "Acme\nCI"},
			want: Default(),
			errs: []string{
				`key "application-name": it is too long or has control characters; allowed: one line of at most 100 bytes`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := New(test.data)
			if diff := cmp.Diff(test.want, got, whole); diff != "" {
				t.Errorf("config (-want +got):\n%s", diff)
			}
			checkLines(t, err, test.errs)
		})
	}
}

// whole compares all of a Config.
var whole = cmp.Options{
	cmp.AllowUnexported(Console{}, Owners{}, Namespaces{}),
	cmp.Comparer(func(a, b *regexp.Regexp) bool { return a.String() == b.String() }),
}

func checkLines(t *testing.T, err error, want []string) {
	t.Helper()
	var lines []string
	if err != nil {
		lines = strings.Split(err.Error(), "\n")
	}
	if len(lines) != len(want) {
		t.Fatalf("got errors %q, want %d", lines, len(want))
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], want[i]) {
			t.Errorf("got %q, want it to start with %q", lines[i], want[i])
		}
	}
}

func TestNewDoesNotRepeatPasswords(t *testing.T) {
	_, err := New(map[string]string{
		"github-url": "https://bot:hunter2@ghe.example.com", "tekton-dashboard-url": "https://:hunter2@%zz",
	})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v, want an error without the password", err)
	}
}
