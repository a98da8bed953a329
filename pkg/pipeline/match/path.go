// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// maxSteps limits what one annotation may cost, as for one expression. Every file is compared with
// every pattern.
const maxSteps = 1_000_000

// onPathChange matches when one changed file matches one pattern.
func onPathChange(ev Event, annotations map[string]string) (Selection, error) {
	patterns, found, err := paths(annotations, pipelinesascode.OnPathChange)
	if err != nil || !found {
		return Selection{}, err
	}
	if ev.Changed == nil {
		return Selection{Needs: template.Needs{Changed: true}}, nil
	}
	file, by, err := first(ev, patterns, pipelinesascode.OnPathChange)
	if err != nil {
		return Selection{}, err
	}
	if file != "" {
		return agrees("on-path-change %s matches the changed file %s", show([]string{by}), shorten(file)), nil
	}
	return Selection{
		Incomplete: ev.Changed.Truncated,
		Reason: fmt.Sprintf("on-path-change %s matches no changed file (%s)%s",
			show(texts(patterns)), count(ev.Changed), hint(annotations, pipelinesascode.OnPathChange)),
	}, nil
}

// onPathChangeIgnore matches when no changed file matches a pattern. on-path-change does not matter
// for it.
func onPathChangeIgnore(ev Event, annotations map[string]string) (Selection, error) {
	patterns, found, err := paths(annotations, pipelinesascode.OnPathChangeIgnore)
	if err != nil || !found {
		return Selection{}, err
	}
	if ev.Changed == nil {
		return Selection{Needs: template.Needs{Changed: true}}, nil
	}
	file, by, err := first(ev, patterns, pipelinesascode.OnPathChangeIgnore)
	if err != nil {
		return Selection{}, err
	}
	if file == "" {
		return agrees("on-path-change-ignore %s matches no changed file", show(texts(patterns))), nil
	}
	return Selection{
		Incomplete: ev.Changed.Truncated,
		Reason:     fmt.Sprintf("on-path-change-ignore %s matches the changed file %s", show([]string{by}), shorten(file)),
	}, nil
}

// incomplete reports whether a selected pipeline reads paths from a list that was cut.
func incomplete(ev Event, annotations map[string]string) bool {
	_, change := annotations[pipelinesascode.OnPathChange]
	_, ignore := annotations[pipelinesascode.OnPathChangeIgnore]
	return (change || ignore) && ev.Changed != nil && ev.Changed.Truncated
}

// paths returns every changed file once, sorted. The caller must not change the list.
func (c *Changes) paths() []string {
	if c.all != nil {
		return c.all
	}
	all := slices.Concat(c.Added, c.Modified, c.Deleted, c.Renamed)
	slices.Sort(all)
	return slices.Compact(all)
}

func count(c *Changes) string {
	n := len(c.paths())
	switch n {
	case 0:
		return "none changed"
	case 1:
		return "changed: " + shorten(c.paths()[0])
	}
	return fmt.Sprintf("changed: %s and %d more", shorten(c.paths()[0]), n-1)
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

// first returns the first changed file that a pattern matches, and that pattern, or "".
func first(ev Event, patterns []pattern, annotation string) (file, by string, err error) {
	files, steps := ev.Changed.paths(), 0
	for _, p := range patterns {
		steps += p.glob.Steps(files)
	}
	if steps > maxSteps {
		return "", "", fault.Invalidf(reasonBadPattern,
			"annotation %s has patterns that take too many steps for %d changed files: write fewer", annotation, len(files))
	}
	if err := ev.Params.Spend(steps); err != nil {
		return "", "", fmt.Errorf("annotation %s: %w", annotation, err)
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
