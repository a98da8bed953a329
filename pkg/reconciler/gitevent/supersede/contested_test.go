// SPDX-License-Identifier: Apache-2.0

package supersede

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/gitevents"
)

func TestOnlyContestedPipelinesAreHeld(t *testing.T) {
	t.Parallel()
	self := with(with(push("self", "", "a", 0), adds("docs", true)), adds("lint", false))
	other := with(push("other", "", "b", 0), adds("lint", false))
	for name, tip := range map[string]func() (string, error){
		"not confirmed": func() (string, error) { return "b", nil },
		"refused":       func() (string, error) { return "", errors.New("403") },
	} {
		l := seriesOf(self, trimmed(self, other))
		v, err := l.findNewer(l.rivals(), asks{tip: tip}, start)
		if err == nil || !slices.Equal(v.held, []string{"build"}) || len(v.notes) > 0 ||
			!slices.Equal(l.contested(l.rivals()), v.held) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}

func TestLaterPipelinesAreAnnotatedToo(t *testing.T) {
	t.Parallel()
	self, older := with(push("self", "a", "b", 0), adds("docs", true)), with(push("older", "", "a", 0), adds("docs", true))
	cancelled(older, "self", "build")
	ask := asks{tip: func() (string, error) { return "b", nil }}
	for names, want := range map[string]int{"build": 0, "docs": 1} {
		l := seriesOf(self, trimmed(self, older))
		if olders, err := l.olderEvents([]string{names}, ask, start); err != nil || len(olders) != want {
			t.Errorf("%s: %d events are told, want %d (%v)", names, len(olders), want, err)
		}
	}
	if rivals := seriesOf(older, trimmed(self, older)).rivals(); len(rivals) != 1 ||
		!slices.Equal(rivals[0].names, []string{"docs"}) {
		t.Errorf("it still waits to hear of %+v", rivals)
	}
	if before := noted(gitevents.Trim(older), "self"); !slices.Equal(before, []string{"build"}) {
		t.Errorf("%v was told before", before)
	}
}

func TestManyUnsettledEventsCostLittle(t *testing.T) { //nolint:paralleltest // it counts what is allocated
	cost := func(count int) (allocations float64) {
		var all []*v1alpha1.GitEvent
		for n := range count {
			all = append(all, push(fmt.Sprint("push-", n), fmt.Sprint(n), fmt.Sprint(n+1), 0))
		}
		self, open := all[count/2], trimmed(all...)
		return testing.AllocsPerRun(1, func() {
			l, ask := seriesOf(self, open), asks{tip: func() (string, error) { return fmt.Sprint(count), nil }}
			v, err := l.findNewer(l.rivals(), ask, start)
			olders, failed := l.olderEvents(replaces(self), ask, start)
			if err != nil || failed != nil || len(v.notes) != 1 || len(olders) != count/2 {
				t.Errorf("%d events: %d notes, %d older ones, %v, %v", count, len(v.notes), len(olders), err, failed)
			}
		})
	}
	if few, many := cost(100), cost(500); many > 8*few {
		t.Errorf("100 events cost %.0f allocations, 500 cost %.0f", few, many)
	}
}

func TestLongNamesTakeSeveralAnnotations(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 300 {
		names = append(names, strings.Repeat("x", 60)+string(rune('a'+i%26))+string(rune('a'+i/26)))
	}
	var all []string
	for _, part := range parts(append(names, names[0])) {
		if len(strings.Join(part, `","`)) > maxNames+10 {
			t.Errorf("a part of %d names", len(part))
		}
		all = append(all, part...)
	}
	if len(all) != len(names) {
		t.Errorf("%d names, want %d", len(all), len(names))
	}
}

func TestLaterAnnotationKeepsEarlierNames(t *testing.T) {
	t.Parallel()
	self := push("self", "", "a", 0)
	for part, name := range []string{"build", "lint"} {
		key, value, err := cancellation(&self.Spec, []string{name}, "b").CancelsAs(partName("newer", part))
		if err != nil {
			t.Fatal(err)
		}
		metav1.SetMetaDataAnnotation(&self.ObjectMeta, key, value)
	}
	metav1.SetMetaDataAnnotation(&self.ObjectMeta, plumbline.CancelAnnotation+"newer2", `{"names":["other"]}`)
	if got := parts(append(noted(self, "newer"), "test")); len(got) != 1 ||
		!slices.Equal(got[0], []string{"build", "lint", "test"}) {
		t.Errorf("%v", got)
	}
}
