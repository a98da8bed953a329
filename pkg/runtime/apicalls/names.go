// SPDX-License-Identifier: Apache-2.0

package apicalls

import "sync"

// maxNames is the most names of admission webhooks and policies that become labels. A cluster has a
// few; the bound is for what a proxy or a broken webhook makes of the text they are taken from.
const maxNames = 50

// names are those met so far.
type names struct {
	mu    sync.Mutex
	limit int
	known map[string]bool
}

func newNames(limit int) *names { return &names{limit: limit, known: map[string]bool{}} }

// bounded returns the name, or "other" when there are too many already.
func (n *names) bounded(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.known[name] {
		if len(n.known) >= n.limit {
			return "other"
		}
		n.known[name] = true
	}
	return name
}
