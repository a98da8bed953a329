// SPDX-License-Identifier: Apache-2.0

package worktree

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// origin is what git clone calls the remote.
const origin = "origin"

// errNoRemote is said of a repository that was never pushed anywhere.
var errNoRemote = errors.New(
	"the repository has no remote, so that nothing says where it lives: --url https://github.com/owner/name does",
)

// remote returns the name of the remote that events come from: origin, or the only one.
func (t *Tree) remote(ctx context.Context) (string, error) {
	said, err := t.git(ctx, "remote")
	if err != nil {
		return "", err
	}
	names := strings.Fields(said)
	switch {
	case slices.Contains(names, origin):
		return origin, nil
	case len(names) == 1:
		return names[0], nil
	case len(names) == 0:
		return "", errNoRemote
	}
	return "", fmt.Errorf("the repository has the remotes %s and none called %s: say with --url which one is meant",
		strings.Join(names, ", "), origin)
}

// URL returns the web URL of the repository that the remote is.
func (t *Tree) URL(ctx context.Context) (string, error) {
	remote, err := t.remote(ctx)
	if err != nil {
		return "", err
	}
	address, err := t.git(ctx, "remote", "get-url", remote)
	if err != nil {
		return "", err
	}
	web, err := WebURL(strings.TrimSpace(address))
	if err != nil {
		return "", fmt.Errorf(
			"the remote %s %w: say with --url where the repository is shown, e.g. --url https://github.com/owner/name", remote,
			err,
		)
	}
	return web, nil
}

// scpForm is the short form of an SSH address: git@github.com:acme/app.git.
var scpForm = regexp.MustCompile(`^(?:[^@/:]+@)?([^/:@]+|\[[0-9a-fA-F:]+\]):(.+)$`)

// WebURL turns an address to clone from into the repository's address for browsers. Errors never
// contain the user name or the password.
func WebURL(address string) (string, error) {
	if found := scpForm.FindStringSubmatch(address); found != nil && !strings.Contains(address, "://") {
		return web("https", found[1], found[2])
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", errors.New("is not a URL")
	}
	switch u.Scheme {
	case "https", "http":
		return web(u.Scheme, u.Host, u.Path)
	case "ssh", "git", "git+ssh", "ssh+git":
		return web("https", u.Hostname(), u.Path) // the port is SSH's
	}
	return "", errors.New("is not at a Git service")
}

func web(scheme, host, at string) (string, error) {
	at = strings.TrimSuffix(strings.Trim(path.Clean("/"+at), "/"), ".git")
	if host == "" || !strings.Contains(at, "/") {
		return "", errors.New("names no owner and repository")
	}
	u := url.URL{Scheme: scheme, Host: strings.ToLower(host), Path: "/" + at}
	return u.String(), nil
}
