// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// Decode implements provider.Webhook. Events are pushes of branches and tags, pull requests with
// new commits to run, merge groups, comments on open pull requests and on commits, and re-run
// requests. Everything else is Ignored with the reason.
//
// GitHub signs the body but not X-GitHub-Delivery. So an attacker who has seen a delivery can send
// it again with another id. The body contains the time of its event, which identifies the event
// (docs/adr/0020).
func (w Webhook) Decode(h http.Header, body []byte) (*v1alpha1.GitEventSpec, error) {
	// Peek parses more strictly; what it refuses must not be decoded.
	origin, err := w.Peek(h, body)
	if err != nil {
		return nil, err
	}
	var spec *v1alpha1.GitEventSpec
	switch origin.Event {
	case "push":
		spec, err = decodePush(body)
	case "pull_request":
		spec, err = decodePullRequest(body)
	case eventMergeGroup:
		spec, err = decodeMergeGroup(body)
	case "issue_comment":
		spec, err = decodeComment(body)
	case "commit_comment":
		spec, err = decodeCommitComment(body)
	case "check_run", "check_suite":
		spec, err = decodeRerun(origin.Event, body)
	default:
		return nil, fault.Ignoredf(reasonUnsupportedEvent, "event %q starts nothing", origin.Event)
	}
	if err != nil {
		return nil, err
	}
	if err := checkHost(h, spec.Host); err != nil {
		return nil, err
	}
	spec.Provider, spec.DeliveryKey, spec.Headers = Name, origin.DeliveryKey, safeHeaders(h)
	if spec.Body != nil {
		spec.Body.Key = payload.Digest([]byte(origin.Event), body)
		spec.HappenedAt = spec.Body.At.DeepCopy()
	}
	return spec, nil
}

// base fills the fields that all events have.
func (p payloadCommon) base() (*v1alpha1.GitEventSpec, error) {
	r := p.Repository
	switch {
	case r == nil:
		return nil, payload.Missing("repository")
	case r.ID <= 0:
		return nil, payload.Missing("repository.id")
	case !ValidName(r.Owner.login(), r.Name) || len(r.Owner.login()) > payload.MaxName || len(r.Name) > payload.MaxName:
		return nil, payload.Missing("repository.owner.login and repository.name")
	}
	host, err := projectHost(r)
	if err != nil {
		return nil, err
	}
	spec := &v1alpha1.GitEventSpec{
		Host: host,
		Project: v1alpha1.Project{
			Owner:         r.Owner.login(),
			OwnerID:       max(r.Owner.ID, 0),
			Name:          r.Name,
			ID:            r.ID,
			URL:           r.HTMLURL,
			DefaultBranch: text.Bytes(text.Clean(r.DefaultBranch), payload.MaxRef),
		},
	}
	if p.Installation != nil {
		spec.InstallationID = p.Installation.ID
	}
	return spec, nil
}

// projectHost returns the host of repository.html_url, which must be the page of the repository
// that the ids are of.
func projectHost(r *payloadRepository) (string, error) {
	u, err := url.Parse(r.HTMLURL)
	if err != nil || provider.Host(u) == "" || len(provider.Host(u)) > payload.MaxName || u.User != nil ||
		u.RawQuery != "" ||
		u.Fragment != "" ||
		len(r.HTMLURL) > payload.MaxURL {
		return "", payload.Missing("repository.html_url")
	}
	if !strings.EqualFold(u.Path, "/"+r.Owner.login()+"/"+r.Name) {
		return "", fault.Invalidf(reasonBadPayload, "repository.html_url is not the page of repository %s/%s",
			r.Owner.login(), r.Name)
	}
	return provider.Host(u), nil
}

// checkHost compares the host with the header in which an Enterprise Server names itself.
func checkHost(h http.Header, host string) error {
	claimed := h.Get(headerHost)
	if claimed == "" || strings.EqualFold(claimed, host) {
		return nil
	}
	return fault.Invalidf(reasonBadPayload, "%s is not the host of repository.html_url", headerHost)
}
