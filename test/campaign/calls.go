// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"slices"
	"sync"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// unmade are the kinds of calls at which processes are disturbed and that none of them has made in the whole play: whatever was to happen
// there never did, and the list is wrong.
func (s *stage) unmade() (all []string) {
	kinds := map[string][]call{receiver0: callsOf(receiver0), controller0: callsOf(controller0)}
	for _, at := range deadlyCalls() {
		kinds[controller0] = append(kinds[controller0], at.call)
	}
	for target, alike := range map[string][]string{receiver0: {receiver0, receiver1}, controller0: {controller0, controller1}} {
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

// missing are the kinds that none of the calls is of, each once.
func missing(kinds []call, made []cluster.Call) (all []call) {
	for _, kind := range kinds {
		if !slices.ContainsFunc(made, kind.matches) && !slices.Contains(all, kind) {
			all = append(all, kind)
		}
	}
	return all
}

// overdue are the calls at which a controller was to be killed and that nobody has made in time.
type overdue struct {
	mu  sync.Mutex
	all []deadly
}

func (o *overdue) add(at deadly) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, at)
}

// turn is the call whose turn it is. When each has had one, those that are overdue have another one first.
func (o *overdue) turn(act Act) deadly {
	all := deadlyCalls()
	o.mu.Lock()
	defer o.mu.Unlock()
	if act.Nth < len(all) || len(o.all) == 0 {
		return takesTurn(act, all)
	}
	at := o.all[0]
	o.all = o.all[1:]
	return at
}
