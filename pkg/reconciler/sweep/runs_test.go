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

// closer takes down which runs it is given.
type closer struct {
	given map[string]int
	asks  bool
	err   error
}

func (c *closer) Close(_ context.Context, run *metav1.PartialObjectMetadata) (bool, error) {
	c.given[keyOf(run)]++
	return c.asks, c.err
}

// running adds a PipelineRun of an event.
func (w *world) running(namespace, name, event string) {
	if w.runs == nil {
		w.runs = map[string]*metav1.PartialObjectMetadata{}
	}
	meta := w.object(name)
	meta.Namespace, meta.Labels = namespace, map[string]string{plumbline.EventLabel: event}
	w.runs[namespace+"/"+name] = &metav1.PartialObjectMetadata{ObjectMeta: meta}
}

// Runs are in the order of namespaces: a name of the second namespace may be less than one of the first, also on the next page.
func TestEachRunWithoutAnOpenEventIsMet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
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
		t.Errorf("%d runs were met, b/a %d times and that of an open event %d times", len(given.given), given.given["b/a"], given.given["b/b"])
	}
}

func TestAPassAsksForSoManyRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
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
func TestANamespaceHasAShareOfAPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
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
