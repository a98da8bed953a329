// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/template"
)

// maxComparisons bounds what one annotation may cost: every file against every alternative of every pattern.
const maxComparisons = 1_000_000

// onPathChange wants one changed file that one pattern matches.
func onPathChange(ev Event, annotations map[string]string) (Decision, error) {
	patterns, found, err := paths(annotations, pipelinesascode.OnPathChange)
	if err != nil || !found {
		return Decision{}, err
	}
	if ev.Changed == nil {
		return Decision{Needs: template.Needs{Changed: true}}, nil
	}
	file, _, err := first(patterns, ev.Changed.All(), pipelinesascode.OnPathChange)
	if err != nil || file != "" {
		return Decision{}, err
	}
	return Decision{Incomplete: ev.Changed.Truncated, Reason: fmt.Sprintf("on-path-change %s matches no changed file (%s)",
		show(texts(patterns)), count(ev.Changed))}, nil
}

// onPathChangeIgnore wants no changed file that a pattern matches, whatever on-path-change says.
func onPathChangeIgnore(ev Event, annotations map[string]string) (Decision, error) {
	patterns, found, err := paths(annotations, pipelinesascode.OnPathChangeIgnore)
	if err != nil || !found {
		return Decision{}, err
	}
	if ev.Changed == nil {
		return Decision{Needs: template.Needs{Changed: true}}, nil
	}
	file, by, err := first(patterns, ev.Changed.All(), pipelinesascode.OnPathChangeIgnore)
	if err != nil || file == "" {
		return Decision{}, err
	}
	return Decision{Incomplete: ev.Changed.Truncated, Reason: fmt.Sprintf("on-path-change-ignore %s matches the changed file %s", show([]string{by}), shorten(file))}, nil
}

// incomplete tells whether a pipeline that was selected reads paths from a list that was cut.
func incomplete(ev Event, annotations map[string]string) bool {
	_, change := annotations[pipelinesascode.OnPathChange]
	_, ignore := annotations[pipelinesascode.OnPathChangeIgnore]
	return (change || ignore) && ev.Changed != nil && ev.Changed.Truncated
}

// All returns every changed file once, sorted.
func (c *Changes) All() []string {
	all := slices.Concat(c.Added, c.Modified, c.Deleted, c.Renamed)
	slices.Sort(all)
	return slices.Compact(all)
}

func count(c *Changes) string {
	n := len(c.All())
	switch n {
	case 0:
		return "none changed"
	case 1:
		return "changed: " + shorten(c.All()[0])
	}
	return fmt.Sprintf("changed: %s and %d more", shorten(c.All()[0]), n-1)
}

func paths(annotations map[string]string, name string) ([]pattern, bool, error) {
	items, found, err := lookup(annotations, name)
	if err != nil || !found {
		return nil, found, err
	}
	patterns := make([]pattern, len(items))
	for i, item := range items {
		if patterns[i], err = compile(item); err != nil {
			return nil, true, fmt.Errorf("annotation %s: %w", name, err)
		}
	}
	return patterns, true, nil
}

// first returns the first file that a pattern matches, and that pattern, or "".
func first(patterns []pattern, files []string, annotation string) (file, by string, err error) {
	cost := 0
	for _, p := range patterns {
		cost += p.glob.Cost()
	}
	if cost*len(files) > maxComparisons {
		return "", "", fault.Invalidf("BadPattern", "annotation %s has patterns for %d alternatives, too many for %d changed files: write fewer",
			annotation, cost, len(files))
	}
	for _, file := range files {
		for _, p := range patterns {
			if p.match(file) {
				return file, p.text, nil
			}
		}
	}
	return "", "", nil
}

func texts(patterns []pattern) []string {
	all := make([]string, len(patterns))
	for i, p := range patterns {
		all[i] = p.text
	}
	return all
}
