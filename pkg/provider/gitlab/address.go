// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/delivery"
)

// address is what a page of GitLab shows a file of.
type address struct{ project, ref, path string }

// FileAt reads the file through the API with the event's own token. Which other projects that one
// reaches is the choice of whoever configured it for the Repository. A token that other tenants use
// too reads the event's own project only: who may write there must not read a stranger's.
func (r *repository) FileAt(ctx context.Context, text string) ([]byte, error) {
	at, ok := parseAddress(r.base, text)
	if !ok {
		return nil, fault.Ignoredf(fault.ReasonOtherAddress, "not the address of a file on GitLab")
	}
	if r.shared && !strings.EqualFold(at.project, r.Path) {
		return nil, fault.Ignoredf(
			"NotCovered",
			"%s is not the event's project, and the token is the global Repository's: nothing else is read with it",
			at.project,
		)
	}
	data, err := r.contents(ctx, at.project, at.ref, at.path)
	switch {
	case provider.StatusCode(err) == http.StatusNotFound:
		return nil, fault.Ignoredf(
			"NotFound",
			"reading %s of %s at %s: GitLab shows no such file to the token",
			at.path,
			at.project,
			at.ref,
		)
	case provider.StatusCode(err) == http.StatusForbidden && fault.Is(err, fault.Operator) && !strings.EqualFold(at.project, r.Path):
		// Another project's rules on who may read; they say nothing about our credentials.
		return nil, fault.Ignoredf("NotCovered", "%s: %s", at.project, fault.Of(err).Message)
	}
	return data, err
}

// parseAddress reads the forms GitLab has: <base>/<groups>/<name>/-/blob|raw/<ref>/<path>.
func parseAddress(base *url.URL, text string) (address, bool) {
	u, err := url.Parse(text)
	if err != nil || provider.Host(u) != provider.Host(base) {
		return address{}, false
	}
	parts := provider.Segments(base, u)
	at := slices.Index(parts, "-")
	if at < 0 || len(parts) < at+2 || (parts[at+1] != "blob" && parts[at+1] != "raw") {
		return address{}, false
	}
	project := joined(parts[:at])
	ref, file, ok := provider.RefAndPath(parts[at+2:])
	return address{project: project, ref: ref, path: file}, ok && delivery.ValidPath(project)
}
