// SPDX-License-Identifier: Apache-2.0

package create

import (
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

const (
	// Apart is the least time between two attempts in a namespace whose quota is exhausted: short
	// enough to use room soon after it was made.
	Apart = 5 * time.Second
	// After a refused creation the next one waits rest times as long as that creation took: one
	// with a thousand steps keeps Tekton's webhook busy for a second. longest bounds that, because
	// a machine may be slow for other reasons.
	rest    = 20
	longest = time.Minute
)

// FullNamespaces remembers in which namespaces a ResourceQuota is exhausted. Of thousands of
// objects that wait there one is tried, not each of them: each attempt costs the API server and its
// admission webhooks as much as a creation. It is only a hint: an object in a namespace that it
// does not have is tried. The zero value is empty. Safe for concurrent use.
type FullNamespaces struct {
	refused recent.Map[string, refusal] // by namespace
}

type refusal struct {
	object string
	fault  fault.Error
	until  time.Time
}

// Full returns why an object cannot be created in a namespace now, nil if it may be tried. It
// returns the recent refusal of another object, a Throttled fault with fault.ReasonQuota, with the
// name of this object.
func (n *FullNamespaces) Full(namespace, object string, now time.Time) error {
	known, found := n.refused.Get(namespace)
	if !found || !now.Before(known.until) {
		return nil
	}
	full := known.fault
	full.Message = strings.ReplaceAll(full.Message, strconv.Quote(known.object), strconv.Quote(object))
	return &full
}

// Note records the outcome of a creation and how long it took. The first creation that is not
// refused because of a quota opens the namespace for all.
func (n *FullNamespaces) Note(namespace, object string, err error, took time.Duration, now time.Time) {
	f := fault.Of(err)
	if f == nil {
		n.refused.Delete(namespace)
		return
	}
	if f.Reason == fault.ReasonQuota {
		n.refused.Put(namespace, refusal{object: object, fault: *f, until: now.Add(min(max(Apart, rest*took), longest))})
	}
}
