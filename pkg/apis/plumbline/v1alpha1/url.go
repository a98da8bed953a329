// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// maxURLBytes is the maximum length of a repository URL, as in RepositoryClaimSpec.url.
const maxURLBytes = 2048

// CanonicalURL returns the one spelling of a repository's web URL: lower case scheme, host and
// path, without user, password, query, fragment, default port, trailing slashes and ".git". It is
// idempotent.
//
// Two URLs of the same repository must share a claim, and two URLs of different repositories must
// not. So an ambiguous spelling is an error: percent encoding, dot segments, empty segments, and
// anything outside ASCII, whose lower case may be an ASCII letter. Errors say which part is wrong;
// they never repeat a user or password.
func CanonicalURL(raw string) (string, error) {
	if len(raw) > maxURLBytes {
		return "", fmt.Errorf("a repository URL has at most %d bytes", maxURLBytes)
	}
	u, err := url.Parse(raw)
	if err != nil {
		// url.Error quotes the URL, which may hold a password
		return "", errors.New("not a URL: it has a character, a port or an escape that no URL has")
	}
	scheme := strings.ToLower(u.Scheme)
	if scheme != "https" && scheme != "http" {
		return "", errors.New("a repository URL starts with https:// or http://")
	}
	host, err := canonicalHost(scheme, u)
	if err != nil {
		return "", err
	}
	path, err := canonicalPath(u.EscapedPath())
	if err != nil {
		return "", err
	}
	return scheme + "://" + host + path, nil
}

// SameURL reports whether two URLs are spellings of the same repository. A URL without a canonical
// spelling equals only itself.
func SameURL(a, b string) bool {
	if a == b {
		return true
	}
	canonical, err := CanonicalURL(a)
	if err != nil {
		return false
	}
	other, err := CanonicalURL(b)
	return err == nil && canonical == other
}

// ClaimName returns the name of the RepositoryClaim of a canonical URL.
func ClaimName(canonical string) string {
	sum := sha256.Sum256([]byte(canonical))
	return "url-" + hex.EncodeToString(sum[:])[:40]
}

func canonicalHost(scheme string, u *url.URL) (string, error) {
	name := strings.TrimSuffix(u.Hostname(), ".")
	if name == "" {
		return "", errors.New("a repository URL names a host")
	}
	if !hostAllowed(name) {
		return "", errors.New(
			"the host of a repository URL is an ASCII name or an IP address; write other names in their xn-- form",
		)
	}
	port, err := canonicalPort(scheme, u.Port())
	if err != nil {
		return "", err
	}
	name = strings.ToLower(name)
	if port != "" {
		return net.JoinHostPort(name, port), nil
	}
	if strings.Contains(name, ":") {
		return "[" + name + "]", nil
	}
	return name, nil
}

func canonicalPort(scheme, port string) (string, error) {
	if port == "" {
		return "", nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", errors.New("the port of a repository URL is a number from 1 to 65535")
	}
	if scheme == "https" && n == 443 || scheme == "http" && n == 80 {
		return "", nil
	}
	return strconv.FormatUint(n, 10), nil
}

func hostAllowed(name string) bool {
	if strings.Contains(name, ":") {
		addr, err := netip.ParseAddr(name)
		return err == nil && addr.Zone() == "" // a zone is local to one machine
	}
	for _, label := range strings.Split(name, ".") {
		if label == "" || !onlyRunes(label, "-_") {
			return false
		}
	}
	return true
}

func canonicalPath(escaped string) (string, error) {
	path := strings.ToLower(strings.TrimRight(escaped, "/"))
	for strings.HasSuffix(path, ".git") {
		path = strings.TrimSuffix(path, ".git")
	}
	if path == "" {
		return "", errors.New("a repository URL has a path, like https://github.com/owner/name")
	}
	for _, segment := range strings.Split(path, "/")[1:] {
		if segment == "" || segment == "." || segment == ".." {
			return "", errors.New(
				"the path of a repository URL has no empty, '.' or '..' segment and no repository that is called '.git'",
			)
		}
		if !onlyRunes(segment, "-._~+@") {
			return "", errors.New("the path of a repository URL has letters, digits and -._~+@ only (no percent encoding)")
		}
	}
	return path, nil
}

// onlyRunes reports whether s has only ASCII letters, digits and the given punctuation.
func onlyRunes(s, punctuation string) bool {
	for _, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && !strings.ContainsRune(punctuation, r) {
			return false
		}
	}
	return true
}
