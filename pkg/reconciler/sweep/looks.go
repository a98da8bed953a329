// SPDX-License-Identifier: Apache-2.0

package sweep

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// maxLooked is for how many PipelineRuns one pass looks whether there is an event, with up to three
// live reads each, and maxLookedOf for how many of one namespace: whoever may create PipelineRuns
// can give thousands of them our label, for which nothing is ever to be done. Namespaces take turns
// from pass to pass, and so do the runs of one.
const (
	maxLooked   = 1000
	maxLookedOf = maxLooked / 10
)

// looks are the runs that a pass has looked at. They are in the order of namespaces and names.
type looks struct {
	// first is the namespace that the pass begins with, and after the name that it begins after in
	// a namespace that had more runs than the pass before looked at.
	first string
	after map[string]string
	// of is how many were looked at of a namespace, total of all.
	of    map[string]int
	total int
	// next is where the next pass begins.
	next *looks
}

func newLooks() *looks { return &looks{after: map[string]string{}, of: map[string]int{}} }

// may reports whether it is the run's turn in this pass.
func (l *looks) may(run *metav1.PartialObjectMetadata) bool {
	if l.next == nil {
		l.next = newLooks()
	}
	switch name, began := l.after[run.Namespace]; {
	case run.Namespace+"/" < l.first+"/": // as the API server has them: team-a comes before team
		if began {
			l.next.after[run.Namespace] = name // it is passed over
		}
		return false
	case l.total >= maxLooked:
		if l.next.first == "" {
			l.next.first = run.Namespace
		}
		return false
	case l.of[run.Namespace] >= maxLookedOf, began && run.Name <= name:
		return false
	}
	return true
}

// end lets the next pass begin after the run that is looked at now.
func (l *looks) end() { l.total = maxLooked }

// took notes that the pass has looked at a run.
func (l *looks) took(run *metav1.PartialObjectMetadata) {
	l.total++
	l.of[run.Namespace]++
	if l.of[run.Namespace] >= maxLookedOf || l.total >= maxLooked {
		l.next.after[run.Namespace] = run.Name
	}
}
