// SPDX-License-Identifier: Apache-2.0

package provider

import "github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"

// Posts caches the checks of which this process has made every post and received the answer, so
// that nothing has to be looked up (docs/adr/0026). A check that is not cached is looked up. The
// zero value is ready.
type Posts struct {
	ids recent.Map[string, string]
}

// Remember records the id of a check that this process has posted, "" when it is about to make the
// first post.
func (p *Posts) Remember(check, id string) {
	p.ids.Put(check, id)
}

// Take reports whether the id is the only one of a check. It drops the check from the cache until
// Known is called again, because the outcome of the post that follows decides.
func (p *Posts) Take(check, id string) (complete bool) {
	p.ids.Update(check, func(known string, found bool) (string, bool) {
		complete = found && known == id
		return "", false
	})
	return complete
}
