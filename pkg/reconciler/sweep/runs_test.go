// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// closer records which runs it gets.
type closer struct {
	given map[string]int
	looks bool
	asks  bool
	err   error
}

func (c *closer) Close(_ context.Context, run *metav1.PartialObjectMetadata) (looked, asked bool, err error) {
	c.given[keyOf(run)]++
	return c.looks || c.asks, c.asks, c.err
}

func (c *closer) Report(_ context.Context, event *metav1.PartialObjectMetadata, may func(namespace string) bool) error {
	if may(event.Annotations["of"]) {
		c.given[event.Name]++
	}
	return c.err
}

// running adds a PipelineRun of an event.
func (w *env) running(namespace, name, event string) {
	if w.runs == nil {
		w.runs = map[string]*metav1.PartialObjectMetadata{}
	}
	meta := w.object(name)
	meta.Namespace, meta.Labels = namespace, map[string]string{plumbline.EventLabel: event}
	w.runs[namespace+"/"+name] = &metav1.PartialObjectMetadata{ObjectMeta: meta}
}

// Runs are in the order of namespaces: a name of the second namespace may be less than one of the
// first, also on the next page.
func TestEachRunWithoutAnOpenEventIsClosed(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	given := &closer{given: map[string]int{}, err: errors.New("not now")}
	w.sweep.closer = given
	w.sweep.open = func(event string) bool { return event == "push-open" }
	for i := range page {
		w.running("a", fmt.Sprintf("z-%03d", i), "push-gone")
	}
	w.running("b", "a", "push-gone")
	w.running("b", "b", "push-open")
	w.pass()
	if len(given.given) != page+1 || given.given["b/a"] != 1 || given.given["b/b"] != 0 {
		t.Errorf("%d runs were handled, b/a %d times and that of an open event %d times", len(given.given),
			given.given["b/a"], given.given["b/b"])
	}
}

// Events that have given up a report are handled, whether or not another one fails. Other events
// are not. A namespace has a share of them.
func TestEachGivenUpReportIsRepeated(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	given := &closer{given: map[string]int{}, err: errors.New("not now")}
	w.sweep.closer = given
	handled := func(namespace string, unreported bool, events int) (n int) {
		var names []string
		for range events {
			event := w.settled(fmt.Sprint("event ", len(w.events)))
			event.Status.Unreported, event.Annotations = unreported, map[string]string{"of": namespace}
			names = append(names, event.Name)
		}
		w.pass()
		for _, name := range names {
			n += given.given[name]
		}
		return n
	}
	if n := handled("reported", false, 3); n != 0 {
		t.Errorf("%d that are reported were handled", n)
	}
	if n := handled("quiet", true, 3); n != 3 {
		t.Errorf("%d of 3 were handled", n)
	}
	if n := handled("hostile", true, maxClosed); n != maxClosedOf {
		t.Errorf("of one namespace %d were handled, want %d", n, maxClosedOf)
	}
}

func TestPassCallsTheGitServicesForSoManyRuns(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	given := &closer{given: map[string]int{}, asks: true}
	w.sweep.closer = given
	for i := range maxClosed + 5 {
		w.running(fmt.Sprintf("team-%03d", i), "z", "push-gone")
	}
	w.pass()
	if len(given.given) != maxClosed {
		t.Errorf("%d runs in one pass, want %d", len(given.given), maxClosed)
	}
}

// A namespace with any number of PipelineRuns leaves most of a pass to others.
func TestNamespaceHasAShareOfAPass(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	given := &closer{given: map[string]int{}, asks: true}
	w.sweep.closer = given
	for i := range maxClosed {
		w.running("a", fmt.Sprintf("z-%03d", i), "push-gone")
	}
	w.running("b", "a", "push-gone")
	w.pass()
	if len(given.given) != maxClosedOf+1 || given.given["b/a"] != 1 {
		t.Errorf("%d runs in one pass, of b %d", len(given.given), given.given["b/a"])
	}
}

// Users can give our label to runs that never need anything. A pass checks a limited number of
// them, of a namespace and of all. All other runs are checked within some passes, whatever their
// namespaces and names.
func TestRunsWithoutWorkTakeTurns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ namespaces, runs, first, passes int }{
		"of one namespace":   {1, 3*maxCheckedOf + 20, maxCheckedOf, 4},
		"of many namespaces": {15, maxCheckedOf + 20, maxChecked, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t)
			given := &closer{given: map[string]int{}, looks: true}
			w.sweep.closer = given
			for n := range c.namespaces {
				for i := range c.runs {
					w.running(fmt.Sprintf("hostile-%02d", n), fmt.Sprintf("run-%03d", i), "push-gone")
				}
			}
			w.running("quiet", "lost", "push-gone")
			all := c.namespaces*c.runs + 1
			w.pass()
			if checked := len(given.given); checked > c.first+1 {
				t.Errorf("the first pass checked %d runs", checked)
			}
			for range c.passes - 1 {
				w.pass()
			}
			if len(given.given) != all {
				t.Errorf("after %d passes %d of %d runs were handled", c.passes, len(given.given), all)
			}
			for range c.passes {
				w.pass()
			}
			for run, n := range given.given {
				if n < 2 {
					t.Fatalf("after %d passes %s was handled %d times", 2*c.passes, run, n)
				}
			}
		})
	}
}

// Four namespaces that always have checks to close leave the next pass to others.
func TestNamespacesTakeTurnsAtTheGitServices(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	given := &closer{given: map[string]int{}, asks: true}
	w.sweep.closer = given
	for n := range maxClosed / maxClosedOf {
		for i := range 2 * maxClosedOf {
			w.running(fmt.Sprintf("hostile-%02d", n), fmt.Sprintf("run-%03d", i), "push-gone")
		}
	}
	w.running("quiet", "lost", "push-gone")
	w.pass()
	w.pass()
	if given.given["quiet/lost"] == 0 {
		t.Errorf("after two passes %d runs were handled, and not that of another namespace", len(given.given))
	}
}

// The API server lists team-9 before team. A pass that starts with one of them continues with the
// other.
func TestNamespacesAreInTheOrderOfTheAPIServer(t *testing.T) {
	t.Parallel()
	for first, want := range map[string]map[string]bool{
		"team-9": {"team-8": false, "team-9": true, "team": true},
		"team":   {"team-8": false, "team-9": false, "team": true, "teams": true},
	} {
		l := newRunLimit()
		l.first = first
		for namespace, may := range want {
			run := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "run"}}
			if got := l.may(run); got != may {
				t.Errorf("a pass that begins with %s checks runs of %s: %v", first, namespace, got)
			}
		}
	}
}
