// SPDX-License-Identifier: Apache-2.0

// Package create remembers in which namespaces a ResourceQuota is used up: of thousands of objects
// that wait there for the same room one is tried, not each of them. Each try costs the API server
// and its admission webhooks as much as a create.
package create

import (
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

const (
	// Apart is the least time between two tries in a namespace that is full: short enough for what
	// comes right after room was made.
	Apart = 5 * time.Second
	// rest is how many times as long as a refused create took the next one waits: one with a
	// thousand steps keeps Tekton's webhook busy for a second. longest bounds that: a machine may
	// be slow for other reasons.
	rest    = 20
	longest = time.Minute
)

// Memory is the refusals of one process. It is advice: what it does not know is tried. The zero
// value knows nothing. Safe for concurrent use.
type Memory struct {
	refused recent.Map[string, refusal] // by namespace
}

type refusal struct {
	object string
	fault  fault.Error
	until  time.Time
}

// Full returns why an object cannot be created in a namespace now, nil if it may be tried: the
// refusal of another one a moment ago, which is Apart or longer if it took long, a Throttled fault
// with fault.ReasonQuota, said about this object.
func (m *Memory) Full(namespace, object string, now time.Time) error {
	known, found := m.refused.Get(namespace)
	if !found || !now.Before(known.until) {
		return nil
	}
	full := known.fault
	full.Message = strings.ReplaceAll(full.Message, strconv.Quote(known.object), strconv.Quote(object))
	return &full
}

// Note takes what became of a create, and how long it took. The first one that is not refused for a
// quota opens the namespace for all.
func (m *Memory) Note(namespace, object string, err error, took time.Duration, now time.Time) {
	f := fault.Of(err)
	if f == nil {
		m.refused.Delete(namespace)
		return
	}
	if f.Reason == fault.ReasonQuota {
		m.refused.Put(namespace, refusal{object: object, fault: *f, until: now.Add(min(max(Apart, rest*took), longest))})
	}
}
