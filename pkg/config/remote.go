// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
	"github.com/plumbline-ci/plumbline/pkg/provider/web"
)

// Remote says from where references in annotations may be fetched.
type Remote struct {
	// Fetch is false when references outside of .tekton are not fetched.
	Fetch bool
	// Hub is where plain names are looked up.
	Hub web.Hub
	// Catalogs are other hubs, by the scheme that refers to them.
	Catalogs map[string]web.Hub
	// Allowed are hosts to fetch from although their addresses are not public. Refused are hosts
	// never to fetch from.
	Allowed, Refused egress.Hosts
}

func (p *parser) remote(previous Remote) Remote {
	standard := Default().Remote
	return Remote{
		Fetch: p.boolean(keyRemoteTasks, standard.Fetch, previous.Fetch),
		Hub: web.Hub{
			URL:     p.hub(keyHubURL, standard.Hub.URL, previous.Hub.URL),
			Catalog: p.line(keyHubCatalog, "", previous.Hub.Catalog),
		},
		Catalogs: p.catalogs(previous.Catalogs),
		Allowed:  p.hosts(keyRemoteAllowed, previous.Allowed),
		Refused:  p.hosts(keyRemoteRefused, previous.Refused),
	}
}

// hub reads a web URL that may have a path.
func (p *parser) hub(key, standard, previous string) string {
	if _, ok := p.value(key); !ok {
		return standard
	}
	return p.base(key, previous)
}

func (p *parser) hosts(key string, previous egress.Hosts) egress.Hosts {
	v, ok := p.value(key)
	if !ok {
		return nil
	}
	list, err := egress.Parse(v)
	if err != nil {
		p.bad(key, err.Error(), `a list like "git.example.com, *.internal.example.com, 10.1.2.3, 10.20.0.0/16"`)
		return previous
	}
	return list
}

var (
	catalogKey  = regexp.MustCompile(`^catalog-([0-9]+)-(id|name|url)$`)
	catalogType = regexp.MustCompile(`^catalog-[0-9]+-type$`)
	catalogID   = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*$`)
)

// catalogs reads catalog-N-id, -name and -url. A catalog with a missing or bad part keeps its
// previous value, if it had one. A catalog without keys is removed.
func (p *parser) catalogs(previous map[string]web.Hub) map[string]web.Hub {
	numbers := map[string]bool{}
	for key := range p.data {
		if parts := catalogKey.FindStringSubmatch(key); parts != nil {
			numbers["catalog-"+parts[1]+"-"] = true
		}
	}
	var all map[string]web.Hub
	for _, prefix := range slices.Sorted(maps.Keys(numbers)) {
		id, hub, ok := p.catalog(prefix)
		if before, known := previous[id]; !ok && known {
			hub, ok = before, true
		}
		if !ok {
			continue
		}
		if _, taken := all[id]; taken {
			p.bad(prefix+"id", "another catalog has this id", "an id of its own")
			continue
		}
		if all == nil {
			all = map[string]web.Hub{}
		}
		all[id] = hub
	}
	return all
}

func (p *parser) catalog(prefix string) (id string, hub web.Hub, ok bool) {
	id, hasID := p.value(prefix + "id")
	name, hasName := p.value(prefix + "name")
	_, hasURL := p.value(prefix + "url")
	if !hasID || !hasName || !hasURL {
		p.bad(prefix+"id", "the catalog is not complete", "all of "+prefix+"id, "+prefix+"name and "+prefix+"url")
		return id, hub, false
	}
	if scheme := strings.ToLower(id); !catalogID.MatchString(id) || scheme == "http" || scheme == "https" {
		p.bad(prefix+"id", "it cannot stand in front of ://", "letters, digits, dots and dashes, but not http or https")
		return id, hub, false
	}
	address := p.base(prefix+"url", "")
	return id, web.Hub{URL: address, Catalog: name}, address != ""
}
