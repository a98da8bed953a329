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

// BaseURL reads a service's web URL from the setting of that name: https, or plain HTTP to this
// machine for tests and the demo. Where credentials are sent is configured; no payload chooses it.
func BaseURL(setting, raw string) (*url.URL, error) {
	base, err := url.Parse(raw)
	if strings.Contains(raw, "@") { // and is not repeated: it may be a password
		return nil, fault.Operatorf(
			"BadConfiguration",
			"%s has an @: set it to https://<host>, without a user or password",
			setting,
		)
	}
	if err != nil || base.Host == "" {
		return nil, fault.Operatorf("BadConfiguration", "%s %q is not a URL: set it to https://<host>", setting, raw)
	}
	if base.Scheme != "https" && (base.Scheme != "http" || !loopback(base.Hostname())) {
		return nil, fault.Operatorf("BadConfiguration", "%s %q must start with https://", setting, raw)
	}
	return base, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// Host is a web URL's host in lower case, with its port unless that is the scheme's own; empty for
// other URLs.
func Host(u *url.URL) string {
	host := strings.ToLower(u.Host)
	for scheme, port := range map[string]string{"https": ":443", "http": ":80"} {
		if u.Scheme == scheme {
			return strings.TrimSuffix(host, port)
		}
	}
	return ""
}

// CheckRedirect follows a renamed repository only where the method survives: a write that became a
// GET would look accepted. Nor does it leave encryption: a service behind a proxy that does not
// know its own scheme redirects to the same host without, and the token would go there.
func CheckRedirect(req *http.Request, via []*http.Request) error {
	if req.URL.Scheme != via[0].URL.Scheme {
		return fault.Operatorf(
			"ForeignHost",
			"the Git service redirects to %s://%s; credentials are not sent there",
			req.URL.Scheme,
			req.URL.Host,
		)
	}
	if len(via) > 5 || req.Method != via[0].Method {
		return fault.Operatorf(fault.ReasonGitMoved, "the repository was renamed or moved: update the Repository's url")
	}
	return nil
}

var shaPattern = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// IsSHA reports whether text is a full commit id.
func IsSHA(text string) bool { return shaPattern.MatchString(text) }

// CheckSHA keeps what is not a full commit id out of API paths; "main" would be read at whatever it
// is by then.
func CheckSHA(sha string) error {
	if !IsSHA(sha) {
		return fault.Operatorf("BadRevision", "%q is not a full commit id", sha)
	}
	return nil
}

// IsZero reports whether a SHA stands for "nothing".
func IsZero(sha string) bool { return strings.Trim(sha, "0") == "" }
