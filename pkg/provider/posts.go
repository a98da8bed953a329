// SPDX-License-Identifier: Apache-2.0

package provider

import "sync"

// maxPosts limits the number of cached checks. A check that was dropped costs look-ups.
const maxPosts = 10_000

// Posts caches the checks of which this process has made every post and received the answer, so
// that nothing has to be looked up (docs/adr/0026). A check that is not cached is looked up. The
// zero value is ready.
type Posts struct {
	mu  sync.Mutex
	ids map[string]string
}

// Known records the id of a check that this process has posted, "" when it is about to make the
// first post.
func (p *Posts) Known(check, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ids) >= maxPosts || p.ids == nil {
		p.ids = map[string]string{}
	}
	p.ids[check] = id
}

// Take reports whether the id is the only one of a check. It drops the check from the cache until
// Known is called again, because the outcome of the post that follows decides.
func (p *Posts) Take(check, id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, found := p.ids[check]
	delete(p.ids, check)
	return found && known == id
}
