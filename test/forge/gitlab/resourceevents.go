// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"slices"
	"time"
)

// resourceEvent is what GitLab keeps of who changed the state or a label of a merge request
// (https://docs.gitlab.com/api/resource_state_events/,
// https://docs.gitlab.com/api/resource_label_events/). That it was opened is none.
type resourceEvent struct {
	id   int64
	by   *user
	when time.Time
	what string // a state; for a label add or remove
	name string // the label's
}

func (m *mergeRequest) became(g *GitLab, by *user, state string) {
	m.states = append(m.states, resourceEvent{id: g.core.NextID(), by: by, when: g.now(), what: state})
}

// relabelled notes which labels were added and removed. The caller holds mu.
func (m *mergeRequest) relabelled(g *GitLab, by *user, before []string) {
	note := func(what string, these, but []string) {
		for _, name := range these {
			if !slices.Contains(but, name) {
				m.labelEvents = append(m.labelEvents,
					resourceEvent{id: g.core.NextID(), by: by, when: g.now(), what: what, name: name})
			}
		}
	}
	note("add", m.labels, before)
	note("remove", before, m.labels)
}

func (e resourceEvent) json(g *GitLab, m *mergeRequest) object {
	return object{
		"id": e.id, "user": e.by.json(g), "created_at": stamp(e.when), "resource_type": "MergeRequest", "resource_id": m.id,
	}
}

func listStateEvents(c *call) answer {
	m := c.mrOfPath()
	return paged(c, m.states, func(e resourceEvent) object {
		o := e.json(c.g, m)
		o["state"], o["source_commit"], o["source_merge_request_id"] = e.what, nil, nil
		return o
	})
}

func listLabelEvents(c *call) answer {
	m := c.mrOfPath()
	return paged(c, m.labelEvents, func(e resourceEvent) object {
		o, label := e.json(c.g, m), m.target.label(c.g, e.name)
		o["action"] = e.what
		o["label"] = object{"id": label["id"], "name": e.name, "color": label["color"], "description": label["description"]}
		return o
	})
}
