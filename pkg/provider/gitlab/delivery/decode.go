// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// Decode implements provider.Webhook. Events are pushes to branches and tags, comments on open
// merge requests and on commits, and merge requests that are opened, reopened, closed, merged or no
// longer drafts, or that get new commits or labels. Everything else is Ignored with the reason.
func (w Webhook) Decode(h http.Header, body []byte) (*v1alpha1.GitEventSpec, error) {
	// Peek parses more strictly; what it refuses must not be decoded.
	origin, err := w.Peek(h, body)
	if err != nil {
		return nil, err
	}
	var spec *v1alpha1.GitEventSpec
	switch origin.Event {
	case eventPush, eventTag:
		spec, err = decodePush(origin.Event, body)
	case eventMergeRequest:
		spec, err = decodeMergeRequest(body)
	case eventNote:
		spec, err = decodeNote(body)
	default:
		return nil, fault.Ignoredf(reasonUnsupportedEvent, "event %q starts nothing", origin.Event)
	}
	if err != nil {
		return nil, err
	}
	if err := checkInstance(h, spec.Host); err != nil {
		return nil, err
	}
	spec.Provider, spec.DeliveryKey, spec.Headers = Name, origin.DeliveryKey, safeHeaders(h)
	return spec, nil
}

// base fills the fields that all events have.
func (p payloadCommon) base(kind string) (*v1alpha1.GitEventSpec, error) {
	switch {
	case p.Kind != kind:
		return nil, fault.Invalidf(reasonBadPayload, "object_kind is %q where the delivery's event is about a %q",
			p.Kind, kind)
	case p.Project == nil:
		return nil, payload.Missing("project")
	case p.Project.ID <= 0:
		return nil, payload.Missing("project.id")
	case !ValidPath(p.Project.Path),
		len(path.Dir(p.Project.Path)) > payload.MaxOwner,
		len(path.Base(p.Project.Path)) > payload.MaxName:
		return nil, payload.Missing("project.path_with_namespace")
	}
	host, err := p.Project.host()
	if err != nil {
		return nil, err
	}
	return &v1alpha1.GitEventSpec{Host: host, Project: v1alpha1.Project{
		Owner: path.Dir(p.Project.Path), Name: path.Base(p.Project.Path), ID: p.Project.ID,
		URL: p.Project.WebURL, DefaultBranch: text.Bytes(text.Clean(p.Project.DefaultBranch), payload.MaxRef),
	}}, nil
}

// host returns the host of project.web_url, which must be the page of the project that the ids are
// of.
func (p *payloadProject) host() (string, error) {
	u, err := url.Parse(p.WebURL)
	if err != nil || provider.Host(u) == "" || len(provider.Host(u)) > payload.MaxName || u.User != nil ||
		u.RawQuery != "" ||
		u.Fragment != "" ||
		len(p.WebURL) > payload.MaxURL {
		return "", payload.Missing("project.web_url")
	}
	// GitLab may be served below a path of its host.
	project, page := "/"+p.Path, u.Path
	if cut := len(page) - len(project); cut < 0 || !strings.EqualFold(page[cut:], project) {
		return "", fault.Invalidf(reasonBadPayload, "project.web_url is not the page of project %s", p.Path)
	}
	return provider.Host(u), nil
}

// checkInstance compares the host with the header in which GitLab names itself.
func checkInstance(h http.Header, host string) error {
	claimed := h.Get(headerInstance)
	if claimed == "" {
		return nil
	}
	if u, err := url.Parse(claimed); err != nil || provider.Host(u) != host {
		return fault.Invalidf(reasonBadPayload, "%s is not the host of project.web_url", headerInstance)
	}
	return nil
}
