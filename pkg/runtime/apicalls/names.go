// SPDX-License-Identifier: Apache-2.0

package apicalls

import "sync"

// maxNames is how many names of admission webhooks and policies become labels. A cluster has a few;
// the limit is for names in the text of a proxy or a broken webhook.
const maxNames = 50

// names stores the names so far.
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
