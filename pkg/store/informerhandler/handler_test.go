// SPDX-License-Identifier: Apache-2.0

package informerhandler

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"
)

func TestForCallsForObjectsOfItsType(t *testing.T) {
	t.Parallel()
	var got []string
	handler := For(
		func(name string) { got = append(got, "changed "+name) },
		func(name string) { got = append(got, "deleted "+name) },
	)
	handler.OnAdd("a", true)
	handler.OnUpdate("a", "b")
	handler.OnDelete("b")
	handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "c", Obj: "c"})
	for _, other := range []any{1, nil, cache.DeletedFinalStateUnknown{Key: "d"}} {
		handler.OnAdd(other, false)
		handler.OnUpdate(other, other)
		handler.OnDelete(other)
	}
	if diff := cmp.Diff([]string{"changed a", "changed b", "deleted b", "deleted c"}, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestForPairsCallsWithBothVersions(t *testing.T) {
	t.Parallel()
	var got [][2]*string
	handler := ForPairs(func(before, after *string) { got = append(got, [2]*string{before, after}) })
	a, b := new(string), new(string)
	*a, *b = "a", "b"
	handler.OnAdd(a, true)
	handler.OnUpdate(a, b)
	handler.OnDelete(b)
	handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "a", Obj: a})
	for _, other := range []any{1, nil, cache.DeletedFinalStateUnknown{Key: "d"}} {
		handler.OnAdd(other, false)
		handler.OnUpdate(other, a)
		handler.OnUpdate(a, other)
		handler.OnDelete(other)
	}
	if diff := cmp.Diff([][2]*string{{nil, a}, {a, b}, {b, nil}, {a, nil}}, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}
