// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/git"
)

// holding is a .tekton whose one PipelineRun has so many labels.
func holding(name string, labels int) []git.File {
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata:\n  name: %s\n  labels:\n", name)
	for i := range labels {
		fmt.Fprintf(&text, "    l%d: v\n", i)
	}
	return []git.File{{Path: ".tekton/a.yaml", Data: []byte(text.String())}}
}

func TestWhatWasReadIsKept(t *testing.T) {
	t.Parallel()
	c := &Cache{}
	read := c.Load("team", holding("a", 1))
	if c.Load("team", holding("a", 1)) != read {
		t.Error("the same files were read again")
	}
	moved := holding("a", 1)
	moved[0].Path = ".tekton/b.yaml"
	for why, set := range map[string]*Set{
		"another owner's": c.Load("other", holding("a", 1)), "another content": c.Load("team", holding("b", 1)),
		"another path":    c.Load("team", moved),
		"more files":      c.Load("team", append(holding("a", 1), git.File{})),
		"without a cache": (*Cache)(nil).Load("team", holding("a", 1)),
	} {
		if set == read {
			t.Errorf("%s: the set is the same", why)
		}
	}
	if name := c.Load("team", holding("b", 1)).Definitions()[0].Name; name != "b" {
		t.Errorf("the definition is %s", name)
	}
}

// Neither a large directory nor many of them take more than is theirs.
func TestACacheIsBoundedAndShared(t *testing.T) {
	t.Parallel()
	const values = maxCounted / 4
	c := &Cache{}
	small := c.Load("small", holding("a", 1))
	large := append(holding("a", values), holding("b", values)...)
	large = append(append(large, holding("c", values)...), holding("d", values)...)
	if first := c.Load("large", large); first == c.Load("large", large) {
		t.Error("a set that takes more than one owner may have is kept")
	}
	for i := range 8 {
		for j := range 4 {
			c.Load(fmt.Sprint("greedy", i), holding(fmt.Sprint(j), values))
		}
	}
	total := 0
	for owner, s := range c.owned {
		sum := 0
		for _, k := range s.sets {
			sum += k.bytes
		}
		if sum != s.bytes || sum > maxOwned {
			t.Errorf("%s has %d bytes, and %d are counted", owner, sum, s.bytes)
		}
		total += sum
	}
	if total != c.total || total > maxKept || total < maxKept/2 {
		t.Errorf("%d bytes are kept, and %d are counted", total, c.total)
	}
	if c.Load("small", holding("a", 1)) != small {
		t.Error("whoever has the most did not give way")
	}
}

func TestWhatWasNotUsedLongestGivesWay(t *testing.T) {
	t.Parallel()
	const values = maxCounted / 4
	c := &Cache{} // with one owner only: of owners of equal size, any may be evicted
	c.Load("two", holding("a", values))
	first := c.Load("two", holding("b", values))
	c.Load("two", holding("a", values))
	for j := range 2 { // there is room for three of them
		if c.Load("two", holding("b", values)) != first {
			t.Error("what was just used gave way")
		}
		c.Load("two", holding(fmt.Sprint("more", j), values))
	}
}

func TestSeveralReadAtOnce(t *testing.T) {
	t.Parallel()
	c := &Cache{}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				name := fmt.Sprint("n", (i+j)%5)
				if got := c.Load("team", holding(name, 2)).Definitions()[0].Name; got != name {
					t.Errorf("%s was read as %s", name, got)
				}
			}
		})
	}
	all.Wait()
	if n := len(c.owned["team"].sets); n != 5 {
		t.Errorf("%d sets are kept, want 5", n)
	}
}
