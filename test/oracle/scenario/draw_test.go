// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"reflect"
	"testing"
)

// A scenario follows from its seed and number, whatever else was drawn.
func TestScenarioFollowsFromSeed(t *testing.T) {
	for n := 1; n <= 50; n++ {
		if a, b := Draw(7, n), Draw(7, n); !reflect.DeepEqual(a, b) {
			t.Fatalf("two draws differ:\n%s\n%s", a, b)
		}
	}
	if reflect.DeepEqual(Draw(7, 1).Acts, Draw(8, 1).Acts) &&
		reflect.DeepEqual(Draw(7, 1).Pipelines, Draw(8, 1).Pipelines) {
		t.Error("two seeds have the same first scenario")
	}
}

// A hundred scenarios have every event, every annotation, every kind of author and of provenance.
func TestHundredScenariosCoverEverything(t *testing.T) {
	for seed := range uint64(5) {
		seen := map[string]bool{}
		for n := 1; n <= 100; n++ {
			s := Draw(seed, n)
			seen["provenance "+s.Provenance], seen[fmt.Sprintf("limit %d", s.Limit)] = true, true
			for _, a := range s.Acts {
				seen[string(a.Kind)], seen["by "+a.By] = true, true
			}
			for _, p := range s.Pipelines {
				seen["keeps "+p.Keeps], seen["cancels "+p.Cancels] = true, true
				for name := range p.On {
					seen[name] = true
				}
			}
		}
		for _, want := range []string{
			"push", "tag", "open", "sync", "echo", "label", "comment", "close", "by tria", "by olga", "by will", "by mia",
			"by rita", "by sam", "on-event", "on-target-branch",
			"on-path-change", "on-path-change-ignore", "on-cel-expression", "on-comment", "on-label", "provenance ",
			"provenance source", "provenance default_branch",
			"limit 1", "keeps 1", "keeps 2", "cancels true", "cancels false", "cancels yes",
		} {
			if !seen[want] {
				t.Errorf("seed %d has no %q", seed, want)
			}
		}
	}
}
