// SPDX-License-Identifier: Apache-2.0

package cache

import "testing"

func TestCacheDropsWhatWasUsedLongestAgo(t *testing.T) {
	c := New[string, *int](2)
	made := 0
	get := func(key string) { c.Get(key, func() *int { made++; return new(int) }) }
	for _, key := range []string{"a", "b", "a", "c", "a"} {
		get(key)
	}
	if made != 3 || len(c.entries) != 2 {
		t.Errorf("made %d, kept %d; want 3 and 2", made, len(c.entries))
	}
	if get("b"); made != 4 {
		t.Error("b was kept although it was used longest ago")
	}
}
