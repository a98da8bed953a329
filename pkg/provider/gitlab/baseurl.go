// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/delivery"
)

// BaseURL implements provider.Provider.BaseURL: the Repository's git_provider.url, with or without
// the API's path; else the part of its own URL before the project; else gitlab.com. The payload is
// not used.
func BaseURL(configured, repositoryURL string, p v1alpha1.Project) string {
	if configured = strings.TrimRight(strings.TrimSpace(configured), "/"); configured != "" {
		return strings.TrimSuffix(configured, "/api/v4")
	}
	u, err := url.Parse(repositoryURL)
	if err != nil || provider.Host(u) == "" {
		return publicURL
	}
	base := url.URL{Scheme: u.Scheme, Host: host(u)}
	project, own := "/"+p.Owner+"/"+p.Name, strings.TrimRight(u.Path, "/")
	for strings.HasSuffix(strings.ToLower(own), ".git") {
		own = own[:len(own)-len(".git")]
	}
	if cut := len(own) - len(project); cut >= 0 && strings.EqualFold(own[cut:], project) {
		base.Path = own[:cut]
	}
	return base.String()
}

// host returns a URL's host with its port, without a trailing dot.
func host(u *url.URL) string {
	name, port, found := strings.Cut(strings.ToLower(u.Host), ".:")
	if found {
		return name + ":" + port
	}
	return strings.TrimSuffix(name, ".")
}

// baseOf returns GitLab's address from configuration alone, and refuses a project on another host:
// a payload must not decide where credentials are sent.
func baseOf(baseURL string, p v1alpha1.Project) (*url.URL, error) {
	base, err := provider.BaseURL("git_provider.url", cmp.Or(baseURL, publicURL))
	if err != nil {
		return nil, err
	}
	project, err := url.Parse(p.URL)
	if err != nil || provider.Host(project) == "" || provider.Host(project) != provider.Host(base) {
		return nil, fault.Operatorf(reasonForeignHost,
			"project %q is not on the configured GitLab %s: set git_provider.url, or remove the Repository", p.URL, base.Host)
	}
	switch {
	case !delivery.ValidPath(p.Owner + "/" + p.Name), strings.Contains(p.Name, "/"):
		return nil, notAProject(p)
	case !strings.EqualFold(joined(provider.Segments(base, project)), p.Owner+"/"+p.Name):
		return nil, fault.Operatorf(reasonBadRepository, "%q is not the page of GitLab's project %s/%s",
			p.URL, p.Owner, p.Name)
	}
	return base, nil
}

func notAProject(p v1alpha1.Project) error {
	return fault.Operatorf(reasonBadRepository,
		"%q is not the path of a GitLab project: set spec.url to the page of the project, https://HOST/GROUP/NAME",
		p.Owner+"/"+p.Name)
}

// joined returns the path of the segments, "" if one contains a slash.
func joined(segments []string) string {
	if slices.ContainsFunc(segments, func(s string) bool { return strings.Contains(s, "/") }) {
		return ""
	}
	return strings.Join(segments, "/")
}
