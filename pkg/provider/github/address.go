// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/delivery"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
)

// address is a file that a page of GitHub shows.
type address struct{ owner, name, ref, path string }

// FileAt reads the file through the API with the event's own token, which covers its repository and
// every public one. It uses a token of another repository only if others has it: a user who may
// write to one repository must not read another private one through it.
func (r *repository) FileAt(ctx context.Context, text string, others ...v1alpha1.Project) ([]byte, error) {
	at, ok := parseAddress(r.web, text)
	if !ok {
		return nil, fault.Ignoredf(fault.ReasonOtherAddress, "not the address of a file on GitHub")
	}
	if other, err := r.among(at, others); err != nil {
		return nil, err
	} else if other != nil {
		return other.contents(ctx, at)
	}
	data, err := r.contents(ctx, at)
	if strings.EqualFold(at.owner, r.owner) && strings.EqualFold(at.name, r.name) {
		return data, err
	}
	if f := fault.Of(err); f != nil && f.Reason == fault.ReasonPermissionMissing {
		// These are another account's rules about who may read. They say nothing about our
		// credentials.
		return nil, fault.Ignoredf(reasonNotCovered, "%s/%s: %s", at.owner, at.name, f.Message)
	}
	return data, err
}

func (r *repository) contents(ctx context.Context, at address) ([]byte, error) {
	what := "reading " + at.path + " of " + at.owner + "/" + at.name
	file, dir, _, err := r.client.Repositories.GetContents(ctx, at.owner, at.name, at.path,
		&gh.RepositoryContentGetOptions{Ref: at.ref})
	switch {
	case provider.StatusCode(err) == http.StatusNotFound:
		return nil, fault.Ignoredf(reasonNotFound, "%s at %s: GitHub shows no such file to %s", what, at.ref, r.caller)
	case err != nil:
		return nil, limits.Failed(what, err)
	}
	switch isFile, err := isFile(what, file, dir); {
	case err != nil:
		return nil, err
	case !isFile:
		return nil, fault.Ignoredf(reasonNotAFile, "%s at %s: not a file", what, at.ref)
	}
	return decoded(what, at.path, file)
}

// parseAddress parses GitHub's forms: <host>/<owner>/<name>/blob|raw/<ref>/<path>, and on an
// Enterprise Server raw.<host>/<owner>/<name>/<ref>/<path>. A ref is one segment (a slash in a
// branch's name is written %2F) unless it starts with refs/heads/ or refs/tags/. The public raw
// host is not github.com, and is read without credentials.
func parseAddress(web, text string) (address, bool) {
	base, err := url.Parse(web)
	if err != nil {
		return address{}, false
	}
	u, err := url.Parse(text)
	if err != nil {
		return address{}, false
	}
	parts := provider.Segments(base, u)
	if len(parts) < 3 || !delivery.ValidName(parts[0], parts[1]) {
		return address{}, false
	}
	rest := parts[2:]
	switch isPage := rest[0] == "blob" || rest[0] == "raw"; provider.Host(u) {
	case provider.Host(base):
		if !isPage {
			return address{}, false
		}
		rest = rest[1:]
	case "raw." + provider.Host(base):
	default:
		return address{}, false
	}
	ref, file, ok := provider.RefAndPath(rest)
	return address{owner: parts[0], name: parts[1], ref: ref, path: file}, ok
}
