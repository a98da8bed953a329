// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/delivery"
)

// address is a file that a page of GitLab shows.
type address struct{ project, ref, path string }

// FileAt reads the file through the API with the event's own token. The user who configured the
// token for the Repository has decided which other projects it covers. A token that other tenants
// use too reads only the event's own project: its users must not read another tenant's through it.
func (r *repository) FileAt(ctx context.Context, text string, _ ...v1alpha1.Project) ([]byte, error) {
	at, ok := parseAddress(r.base, text)
	if !ok {
		return nil, fault.Ignoredf(fault.ReasonOtherAddress, "not the address of a file on GitLab")
	}
	if r.shared && !strings.EqualFold(at.project, r.Path) {
		return nil, fault.Ignoredf(reasonNotCovered,
			"%s is not the event's project, and the token is the global Repository's: nothing else is read with it", at.project)
	}
	data, err := r.contents(ctx, at.project, at.ref, at.path)
	switch {
	case provider.StatusCode(err) == http.StatusNotFound:
		return nil, fault.Ignoredf(reasonNotFound, "reading %s of %s at %s: GitLab shows no such file to the token",
			at.path, at.project, at.ref)
	case provider.StatusCode(err) == http.StatusForbidden && fault.Is(err, fault.Operator) &&
		!strings.EqualFold(at.project, r.Path):
		// These are another project's rules about who may read. They say nothing about our
		// credentials.
		return nil, fault.Ignoredf(reasonNotCovered, "%s: %s", at.project, fault.Of(err).Message)
	}
	return data, err
}

// parseAddress parses GitLab's form: <base>/<groups>/<name>/-/blob|raw/<ref>/<path>.
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
