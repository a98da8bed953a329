// SPDX-License-Identifier: Apache-2.0

package provider

import "github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"

// Posts remembers of which checks every post was made by this process and answered, so that nothing
// has to be looked up (docs/adr/0026). It is advice: what it does not know is looked up. The zero
// value is ready.
type Posts struct {
	ids recent.Map[string, string]
}

// Known notes the id of a check that this process has posted, "" when it is about to make the first
// post.
func (p *Posts) Known(check, id string) {
	p.ids.Put(check, id)
}

// Take reports whether the id is all that there is of a check. It is not known again before Known
// is called: the outcome of the post that follows decides.
func (p *Posts) Take(check, id string) (complete bool) {
	p.ids.Update(check, func(known string, found bool) (string, bool) {
		complete = found && known == id
		return "", false
	})
	return complete
}
