// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/yamlerror"
)

// expander replaces placeholders by values in a tree. A value is placed once and never read again.
// So it can add neither structure nor placeholders of its own. The exception is a value in place of
// a whole plain scalar, which may become a node.
type expander struct {
	scope *template.Scope
	// left is how many more bytes may be produced.
	left int
	// needs is what must be known first. err is the first error in the order of keys, and wrong is
	// its path. If either is set, the tree cannot be used.
	needs template.Needs
	err   error
	wrong yamlerror.Path
	// path is the current place in the tree.
	path yamlerror.Path
	// plain are the texts that whole plain scalars became.
	plain map[string]bool
	// filled is true after the first placeholder. Another scope may then produce another document.
	filled bool
}

func newExpander(scope *template.Scope) *expander {
	return &expander{scope: scope, left: maxRendered, plain: map[string]bool{}}
}

// expand returns the document's tree with all placeholders replaced.
func (x *expander) expand(doc *document) (any, error) {
	tree := x.value(doc.tree)
	switch {
	case errors.Is(x.err, template.ErrTooLong):
		return nil, tooLarge(doc)
	case x.err != nil:
		return nil, fmt.Errorf("%s: %w", doc.placeOf(x.wrong), x.err)
	case x.needs.Any():
		return nil, &template.Unknown{Needs: x.needs}
	}
	return tree, nil
}

// value returns a copy of a tree with its strings and keys replaced.
func (x *expander) value(v any) any {
	if x.err != nil {
		return nil
	}
	switch v := v.(type) {
	case string:
		x.filled = x.filled || strings.Contains(v, "{{")
		text, err := x.scope.Place(v, &x.left)
		x.note(err)
		return text
	case plain:
		return x.node(v)
	case block:
		return x.block(v)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = x.within(i, item)
		}
		return list
	case map[string]any:
		return x.mapping(v)
	}
	return v
}

// within is value for one step into a tree.
func (x *expander) within(step, v any) any {
	x.path = append(x.path, step)
	v = x.value(v)
	x.path = x.path[:len(x.path)-1]
	return v
}

func (x *expander) node(v plain) any {
	x.filled = true
	node, err := x.scope.PlaceNode(string(v), &x.left)
	x.note(err)
	if text, is := node.(string); is {
		x.plain[text] = true
	}
	return node
}

func (x *expander) mapping(v map[string]any) map[string]any {
	mapping := make(map[string]any, len(v))
	for _, key := range slices.Sorted(maps.Keys(v)) {
		x.filled = x.filled || strings.Contains(key, "{{")
		replaced, err := x.scope.Place(key, &x.left)
		x.note(err)
		if _, found := mapping[replaced]; found && err == nil {
			x.note(
				fault.Invalidf(reasonDuplicateKey, "with the variables replaced the key %s is there twice: rename one", replaced),
			)
		}
		mapping[replaced] = x.within(key, v[key])
	}
	return mapping
}

// note records what is needed, and the first error.
func (x *expander) note(err error) {
	if needs, unknown := template.NeedsOf(err); unknown {
		x.needs.Add(needs)
	} else if x.err == nil && err != nil {
		x.err, x.wrong = err, slices.Clone(x.path)
	}
}
