// SPDX-License-Identifier: Apache-2.0

package sweep

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// maxChecked is how many PipelineRuns one pass checks for an event, with up to three live reads
// each, and maxCheckedOf how many of one namespace: its users can give our label to thousands of
// PipelineRuns that never need anything. Namespaces, and the runs of one, take turns from pass to
// pass.
const (
	maxChecked   = 1000
	maxCheckedOf = maxChecked / 10
)

// runLimit limits the runs that a pass checks. They are in the order of namespaces and names.
type runLimit struct {
	// first is the namespace that the pass begins with. In a namespace that had too many runs for
	// the last pass, it begins after the name in after.
	first string
	after map[string]string
	// of counts the checked runs of a namespace, and total all of them.
	of    map[string]int
	total int
	// next is where the next pass begins.
	next *runLimit
}

func newRunLimit() *runLimit { return &runLimit{after: map[string]string{}, of: map[string]int{}} }

// may reports whether this pass checks the run.
func (l *runLimit) may(run *metav1.PartialObjectMetadata) bool {
	if l.next == nil {
		l.next = newRunLimit()
	}
	switch name, began := l.after[run.Namespace]; {
	case run.Namespace+"/" < l.first+"/": // in the order of the API server: team-a comes before team
		if began {
			l.next.after[run.Namespace] = name // this pass skips it
		}
		return false
	case l.total >= maxChecked:
		if l.next.first == "" {
			l.next.first = run.Namespace
		}
		return false
	case l.of[run.Namespace] >= maxCheckedOf, began && run.Name <= name:
		return false
	}
	return true
}

// end lets the next pass begin after the current run.
func (l *runLimit) end() { l.total = maxChecked }

// checked records that the pass has checked a run.
func (l *runLimit) checked(run *metav1.PartialObjectMetadata) {
	l.total++
	l.of[run.Namespace]++
	if l.of[run.Namespace] >= maxCheckedOf || l.total >= maxChecked {
		l.next.after[run.Namespace] = run.Name
	}
}
