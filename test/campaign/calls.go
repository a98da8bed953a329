// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"slices"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// unmade returns the kinds of calls at which processes are disturbed and that none of them has
// made: then the disturbance never happened, and the list is wrong.
func (s *stage) unmade() (all []string) {
	kinds := map[string][]call{receiver0: callsOf(receiver0), controller0: callsOf(controller0)}
	for _, at := range deadlyCalls() {
		kinds[controller0] = append(kinds[controller0], at.call)
	}
	for target, alike := range map[string][]string{receiver0: {receiver0, receiver1},
		controller0: {controller0, controller1}} {
		var made []cluster.Call
		for _, one := range alike {
			made = append(made, s.processes[one].Proxy.Calls()...)
		}
		for _, kind := range missing(kinds[target], made) {
			all = append(all, kind.String()+" by the "+target[:len(target)-len(" 0")]+"s")
		}
	}
	slices.Sort(all)
	return all
}

// missing returns the kinds that none of the calls has, each once.
func missing(kinds []call, made []cluster.Call) (all []call) {
	for _, kind := range kinds {
		if !slices.ContainsFunc(made, kind.matches) && !slices.Contains(all, kind) {
			all = append(all, kind)
		}
	}
	return all
}
