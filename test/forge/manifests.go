// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// manifestLife is how long the code of a manifest may be exchanged.
const manifestLife = time.Hour

// maxAppName is the longest name that GitHub's form takes.
const maxAppName = 34

// manifest is an App that a user has confirmed on GitHub's page, until its code is exchanged.
type manifest struct {
	Name string
	URL  string
	Hook struct {
		URL    string
		Active *bool
	} `json:"hook_attributes"`
	Redirect    string            `json:"redirect_url"`
	Public      bool              `json:"public"`
	Permissions map[string]string `json:"default_permissions"`
	Events      []string          `json:"default_events"`

	owner string
	at    time.Time
}

// eventsOf are the events that a permission makes available.
func eventsOf() map[string][]string {
	return map[string][]string{
		"push":           {"contents"},
		"commit_comment": {"contents"},
		"merge_group":    {"merge_queues"},
		"pull_request":   {"pull_requests"},
		"issue_comment":  {"issues", "pull_requests"},
	}
}

// newApp is the page that a form with a manifest leads to. The user is signed in and confirms at
// once: GitHub then redirects to the manifest's redirect_url with a code and the state.
func newApp(c *call) answer {
	form, err := url.ParseQuery(string(c.body))
	var m manifest
	if err != nil || json.Unmarshal([]byte(form.Get("manifest")), &m) != nil {
		return refuse(http.StatusBadRequest, c.rt.doc, "Problems parsing JSON")
	}
	back, err := url.Parse(m.Redirect)
	if err != nil || back.Host == "" || m.URL == "" || m.Hook.URL == "" || len(m.Name) > maxAppName || !m.grants() {
		return refuse(http.StatusUnprocessableEntity, c.rt.doc, "Invalid GitHub App configuration")
	}
	m.owner, m.at = c.r.PathValue("org"), c.g.opts.Now()
	code := traffic.RandomHex(20)
	c.g.manifests[code] = m
	query := back.Query()
	query.Set("code", code)
	if state := c.r.URL.Query().Get("state"); state != "" {
		query.Set("state", state)
	}
	back.RawQuery = query.Encode()
	return answer{Status: http.StatusFound}.With("Location", back.String())
}

// grants reports whether each event has the permission that makes it available.
func (m manifest) grants() bool {
	return !slices.ContainsFunc(m.Events, func(event string) bool {
		needs, known := eventsOf()[event]
		return !known || !slices.ContainsFunc(needs, func(p string) bool { return m.Permissions[p] != "" })
	})
}

var notInSlug = regexp.MustCompile(`[^a-z0-9]+`)

// convertManifest exchanges a code, once.
func convertManifest(c *call) answer {
	code := c.r.PathValue("code")
	m, known := c.g.manifests[code]
	if !known || c.g.opts.Now().Sub(m.at) > manifestLife {
		return notFound(c.rt.doc)
	}
	delete(c.g.manifests, code)
	slug := strings.Trim(notInSlug.ReplaceAllString(strings.ToLower(m.Name), "-"), "-")
	a := c.g.registerApp(c.g.core.NextID(), slug, nil, traffic.RandomHex(20))
	a.webhook = m.Hook.URL
	return created(object{
		"id": a.ID, "slug": slug, "name": m.Name, "owner": object{"login": m.owner}, "external_url": m.URL,
		"html_url": c.g.core.BaseURL + "/apps/" + slug, "permissions": m.Permissions, "events": m.Events,
		"client_id": "Iv1." + traffic.RandomHex(8), "client_secret": traffic.RandomHex(20),
		"webhook_secret": a.WebhookSecret, "pem": a.PrivateKeyPEM,
	})
}

// AppByID returns a registered App.
func (g *GitHub) AppByID(id int64) (App, bool) {
	defer g.lock()()
	if a := g.apps[id]; a != nil {
		return a.App, true
	}
	return App{}, false
}
