// SPDX-License-Identifier: Apache-2.0

package provider

import "sync"

// maxPosts bounds what is remembered; forgetting costs look-ups.
const maxPosts = 10_000

// Posts remembers of which checks every post was made by this process and answered, so that nothing
// has to be looked up (docs/adr/0026). It is advice: what it does not know is looked up. The zero
// value is ready.
type Posts struct {
	mu  sync.Mutex
	ids map[string]string
}

// Known notes the id of a check that this process has posted, "" when it is about to make the first
// post.
func (p *Posts) Known(check, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ids) >= maxPosts || p.ids == nil {
		p.ids = map[string]string{}
	}
	p.ids[check] = id
}

// Take reports whether the id is all that there is of a check. It is not known again before Known
// is called: the outcome of the post that follows decides.
func (p *Posts) Take(check, id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, found := p.ids[check]
	delete(p.ids, check)
	return found && known == id
}
