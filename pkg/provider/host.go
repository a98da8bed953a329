// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// BaseURL parses a service's web URL from a setting of that name: https, or http to this machine
// for tests and the demo. The configuration decides where credentials are sent, never a payload.
func BaseURL(setting, raw string) (*url.URL, error) {
	base, err := url.Parse(raw)
	if strings.Contains(raw, "@") { // the value may contain a password, so it is not repeated
		return nil, fault.Operatorf(reasonBadConfiguration,
			"%s has an @: set it to https://<host>, without a user or password", setting)
	}
	if err != nil || base.Host == "" {
		return nil, fault.Operatorf(reasonBadConfiguration, "%s %q is not a URL: set it to https://<host>", setting, raw)
	}
	if base.Scheme != "https" && (base.Scheme != "http" || !loopback(base.Hostname())) {
		return nil, fault.Operatorf(reasonBadConfiguration, "%s %q must start with https://", setting, raw)
	}
	return base, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// Host returns a web URL's host in lower case, with its port unless that is the scheme's default;
// empty for other URLs.
func Host(u *url.URL) string {
	host := strings.ToLower(u.Host)
	for scheme, port := range map[string]string{"https": ":443", "http": ":80"} {
		if u.Scheme == scheme {
			return strings.TrimSuffix(host, port)
		}
	}
	return ""
}

// SameAddress reports whether two URLs lead to the same place.
func SameAddress(a, b string) bool {
	left, err := url.Parse(a)
	right, err2 := url.Parse(b)
	return err == nil && err2 == nil && strings.EqualFold(left.Scheme, right.Scheme) &&
		Host(left) == Host(right) &&
		strings.TrimRight(left.Path, "/") == strings.TrimRight(right.Path, "/") && left.RawQuery == right.RawQuery
}

// CheckRedirect follows a redirect (of a renamed repository) only if the method stays the same: a
// write that became a GET would look accepted. It never follows one from https to http. A service
// behind a proxy may not know its own scheme, redirect to the same host with http, and the token
// would be sent there.
func CheckRedirect(req *http.Request, via []*http.Request) error {
	if req.URL.Scheme != via[0].URL.Scheme {
		return fault.Operatorf(reasonForeignHost, "the Git service redirects to %s://%s; credentials are not sent there",
			req.URL.Scheme, req.URL.Host)
	}
	if len(via) > 5 || req.Method != via[0].Method {
		return fault.Operatorf(fault.ReasonGitMoved, "the repository was renamed or moved: update the Repository's url")
	}
	return nil
}

var shaPattern = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// IsSHA reports whether text is a full commit id.
func IsSHA(text string) bool { return shaPattern.MatchString(text) }

// CheckSHA keeps everything except full commit ids out of API paths: a branch name could be another
// commit at each call.
func CheckSHA(sha string) error {
	if !IsSHA(sha) {
		return fault.Operatorf(reasonBadRevision, "%q is not a full commit id", sha)
	}
	return nil
}

// IsZero reports whether a commit id stands for "no commit".
func IsZero(sha string) bool { return strings.Trim(sha, "0") == "" }
