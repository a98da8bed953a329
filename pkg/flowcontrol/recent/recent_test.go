// SPDX-License-Identifier: Apache-2.0

package recent

import (
	"slices"
	"strconv"
	"sync"
	"testing"
)

func TestMapEvictsWhatWasNotUsedForTheLongestTime(t *testing.T) {
	t.Parallel()
	m := Map[string, string]{Max: 2}
	var created []string
	for _, key := range []string{"a", "b", "a", "c", "a", "b"} {
		if got := m.GetOrCreate(key, func() string { created = append(created, key); return key }); got != key {
			t.Errorf("GetOrCreate(%q) = %q", key, got)
		}
	}
	if want := []string{"a", "b", "c", "b"}; !slices.Equal(created, want) {
		t.Errorf("created %v, want %v", created, want)
	}
	if _, found := m.Get("c"); found {
		t.Error("there are three values, want at most two")
	}
}

func TestZeroMapHasADefaultLimit(t *testing.T) {
	t.Parallel()
	var m Map[int, int]
	for i := range DefaultMax + 1 {
		m.Put(i, i)
	}
	_, first := m.Get(0)
	second, found := m.Get(1)
	if first || !found || second != 1 {
		t.Errorf("found the first: %v, the second: %v; want the first one evicted alone", first, found)
	}
}

func TestMapDeletes(t *testing.T) {
	t.Parallel()
	var m Map[string, error]
	m.Delete("a")
	m.DeleteFunc(func(string) bool { return true })
	for _, key := range []string{"a", "b", "c"} {
		m.Put(key, nil)
	}
	m.Delete("a")
	m.DeleteFunc(func(key string) bool { return key == "b" })
	for key, want := range map[string]bool{"a": false, "b": false, "c": true} {
		if value, found := m.Get(key); found != want || value != nil {
			t.Errorf("Get(%q) = %v, %v; want nil, %v", key, value, found, want)
		}
	}
}

func TestUpdateIsAtomic(t *testing.T) {
	t.Parallel()
	var m Map[string, string]
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			m.Update("n", func(value string, _ bool) (string, bool) {
				n, _ := strconv.Atoi(value)
				return strconv.Itoa(n + 1), true
			})
		})
	}
	group.Wait()
	if n, _ := m.Get("n"); n != "100" {
		t.Errorf("counted %s of 100 updates", n)
	}
}
