// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
)

// parser reads one key after the other and collects the errors.
type parser struct {
	data map[string]string
	seen map[string]bool
	errs []error
}

// parse returns the configuration. A bad key keeps its value of previous.
func parse(data map[string]string, previous *Config) (*Config, error) {
	p := &parser{data: data, seen: map[string]bool{}}
	standard := Default()
	c := &Config{
		ApplicationName:  p.line(keyApplicationName, standard.ApplicationName, previous.ApplicationName),
		SecretAutoCreate: p.boolean(keySecretAutoCreate, standard.SecretAutoCreate, previous.SecretAutoCreate),
		ShareGlobalToken: p.boolean(keyShareGlobal, standard.ShareGlobalToken, previous.ShareGlobalToken),
		RunPermissions:   p.permissions(keyRunPermissions, previous.RunPermissions),
		SkipPushOfPulls:  p.boolean(keySkipPushOfPulls, standard.SkipPushOfPulls, previous.SkipPushOfPulls),
		GitHubURL:        p.origin(keyGitHubURL, standard.GitHubURL, previous.GitHubURL, "https://github.example.com"),
		SettledCap: p.integer(keySettledCap, limits{minimum: minSettledCap, maximum: maxSettledCap},
			standard.SettledCap, previous.SettledCap),
		Console: Console{
			dashboard: p.base(keyDashboardURL, previous.Console.dashboard),
			name:      p.line(keyConsoleName, "", previous.Console.name),
			url:       p.base(keyConsoleURL, previous.Console.url),
			run:       p.template(keyConsoleRun, nil, previous.Console.run),
			task:      p.template(keyConsoleTask, []string{varTask, varPod, varFailedStep}, previous.Console.task),
			namespace: p.template(keyConsoleNamespace, nil, previous.Console.namespace),
			results:   p.template(keyResultsURL, []string{varUID}, previous.Console.results),
		},
	}
	c.WebhookURL = p.base(keyWebhookURL, previous.WebhookURL)
	c.Open = p.open(standard.Open, previous.Open)
	c.Remote = p.remote(previous.Remote)
	c.RunLimits = p.runLimits(previous.RunLimits)
	c.GitAllowed = p.hosts(keyGitAllowed, previous.GitAllowed)
	c.TokenScope = p.tokenScope(previous.TokenScope)
	c.Owners = p.owners()
	c.Namespaces = p.namespaces(previous.Namespaces)
	c.PipelinesAsCode = p.pipelinesAsCode(previous)
	c.MembersMayRun = p.boolean(keyMembersMayRun, false, previous.MembersMayRun)
	c.RequireApprovedSHA = p.boolean(keyRequireSHA, false, previous.RequireApprovedSHA)
	c.RememberApprovals = p.boolean(keyRemember, false, previous.RememberApprovals)
	c.Retention = p.keep(previous.Retention)
	c.CancelInProgress = p.cancelInProgress(previous.CancelInProgress)
	c.InfrastructureRetries = p.integer(keyRetries, limits{minimum: 0, maximum: v1alpha1.MaxInfrastructureRetries},
		standard.InfrastructureRetries, previous.InfrastructureRetries)
	c.LogSnippet = LogSnippet{
		Show: p.boolean(keyLogSnippet, standard.LogSnippet.Show, previous.LogSnippet.Show),
		Lines: p.integer(keyLogLines, limits{minimum: 1, maximum: maxLogLines},
			standard.LogSnippet.Lines, previous.LogSnippet.Lines),
	}
	c.ErrorDetection = p.errorDetection(standard.ErrorDetection, previous.ErrorDetection)
	c.SettledRetention = p.retention(c.GitHubURL, previous.SettledRetention)
	p.unknown()
	return c, errors.Join(p.errs...)
}

// value returns the trimmed value and whether there is one.
func (p *parser) value(key string) (string, bool) {
	p.seen[key] = true
	v := strings.TrimSpace(p.data[key])
	return v, v != ""
}

func (p *parser) bad(key, problem, allowed string) {
	p.errs = append(p.errs, fmt.Errorf("key %q: %s; allowed: %s", key, problem, allowed))
}

// unknown reports keys that neither Plumbline nor Pipelines-as-Code reads, such as misspelt ones.
func (p *parser) unknown() {
	known := strings.Join(slices.Sorted(maps.Keys(p.seen)), ", ")
	for _, key := range slices.Sorted(maps.Keys(p.data)) {
		if _, foreign := PaCKey(key); !p.seen[key] && !foreign && !strings.HasPrefix(key, "_") {
			p.bad(key, "this version does not read it", known)
		}
	}
}

func (p *parser) line(key, standard, previous string) string {
	v, ok := p.value(key)
	if !ok {
		return standard
	}
	if len(v) > maxNameLength || strings.ContainsFunc(v, unicode.IsControl) {
		p.bad(key, "it is too long or has control characters", fmt.Sprintf("one line of at most %d bytes", maxNameLength))
		return previous
	}
	return v
}

func (p *parser) boolean(key string, standard, previous bool) bool {
	v, ok := p.value(key)
	if !ok {
		return standard
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		p.bad(key, strconv.Quote(v)+" is not a boolean", `"true" or "false"`)
		return previous
	}
	return b
}

type limits struct{ minimum, maximum int }

func (p *parser) integer(key string, within limits, standard, previous int) int {
	v, ok := p.value(key)
	if !ok {
		return standard
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < within.minimum || n > within.maximum {
		p.bad(key, strconv.Quote(v)+" is out of range or not a number",
			fmt.Sprintf("a whole number from %d to %d", within.minimum, within.maximum))
		return previous
	}
	return n
}

func (p *parser) open(standard, previous quota.Limits) quota.Limits {
	events := p.integer(keyOpenEvents, limits{minimum: minOpenEvents, maximum: maxOpenEvents}, standard.Events,
		previous.Events)
	mebibytes := p.integer(keyOpenPayloads, limits{minimum: minOpenPayloads, maximum: maxOpenPayloads},
		int(standard.Bytes>>20), int(previous.Bytes>>20))
	return quota.Limits{Events: events, Bytes: int64(mebibytes) << 20}
}

// retention reads how long stubs are kept: at least as long as the Git service redelivers, else a
// redelivery could run an event twice. The previous value of a bad key is raised to that time,
// because the same update may have changed the service.
func (p *parser) retention(githubURL string, previous time.Duration) time.Duration {
	least := publicRetentionDays
	if githubURL != publicGitHub {
		least = enterpriseRetentionDays
	}
	fallback := max(least, int(previous/day))
	days := p.integer(keyRetentionDays, limits{minimum: least, maximum: maxRetentionDays}, least, fallback)
	return time.Duration(days) * day
}

const webURL = `an absolute URL that starts with "http://" or "https://", without user, query and fragment`

// origin reads the web URL of a host, without a path.
func (p *parser) origin(key, standard, previous, example string) string {
	v, ok := p.value(key)
	if !ok {
		return standard
	}
	u, problem := parseWeb(v)
	if problem == "" && strings.Trim(u.Path, "/") != "" {
		problem = "it has a path"
	}
	if problem != "" {
		p.bad(key, problem, webURL+" and path, like "+strconv.Quote(example))
		return previous
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}

// base reads a web URL, "" when the key is not set.
func (p *parser) base(key, previous string) string {
	v, ok := p.value(key)
	if !ok {
		return ""
	}
	if _, problem := parseWeb(v); problem != "" {
		p.bad(key, problem, webURL)
		return previous
	}
	return strings.TrimRight(v, "/")
}

// template reads a URL with {{ variables }}, "" when the key is not set. more are the variables
// that not every template has.
func (p *parser) template(key string, more []string, previous string) string {
	v, ok := p.value(key)
	if !ok {
		return ""
	}
	if filled := variable.ReplaceAllString(v, "x"); !isHTTP(filled) || strings.ContainsAny(filled, "{}") {
		variables := strings.Join(append([]string{varNamespace, varRun}, more...), " }}, {{ ")
		p.bad(key, "it is not a web URL once its variables are replaced", `a URL that starts with "http://" or "https://"; `+
			"variables: {{ "+variables+" }}, and params of the Repository")
		return previous
	}
	return v
}

// parseWeb returns the problem without the value: a URL may hold a password.
func parseWeb(v string) (*url.URL, string) {
	u, err := url.Parse(v)
	if err != nil {
		return nil, "it is not a URL"
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return nil, "it is not an absolute web URL"
	case u.User != nil, u.RawQuery != "", u.ForceQuery, u.Fragment != "":
		return nil, "it has a user, a query or a fragment"
	case strings.ContainsAny(u.Path, "{}"):
		return nil, "it has { or } in it: variables are for the URLs of a custom console alone"
	}
	return u, ""
}

func isHTTP(v string) bool {
	u, err := url.Parse(v)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}
