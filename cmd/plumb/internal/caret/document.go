// SPDX-License-Identifier: Apache-2.0

package caret

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/plumbline-ci/plumbline/pkg/pipeline/yamlerror"
)

// document is one document of a file, as the author wrote it.
type document struct {
	// lines are the lines of the file. The document goes from line from to line to.
	lines    []string
	from, to int
	// hidden are the lines as the parser has seen them, up to the document's end.
	hidden []string
	// root is nil if the document is no YAML.
	root *yaml.Node
}

// separator is a line that starts a document.
var separator = regexp.MustCompile(`^---(?:[ \t].*)?\r?$`)

// placeholders are replaced by as many letters before the parser runs, so that no column changes.
var placeholders = regexp.MustCompile(`{{[^{}\r\n]*}}`)

// newDocument returns the document that has content at a line.
func newDocument(text string, line int) *document {
	d := &document{lines: strings.Split(text, "\n")}
	line = min(line, len(d.lines))
	d.from, d.to = line-1, line
	for d.from > 0 && !separator.MatchString(d.lines[d.from]) {
		d.from--
	}
	for d.to < len(d.lines) && !separator.MatchString(d.lines[d.to]) {
		d.to++
	}
	source := strings.Repeat("\n", d.from) + strings.Join(d.lines[d.from:d.to], "\n")
	hidden := placeholders.ReplaceAllStringFunc(source,
		func(p string) string { return strings.Repeat("x", utf8.RuneCountInString(p)) })
	d.hidden = strings.Split(hidden, "\n")
	var root yaml.Node
	if yaml.Unmarshal([]byte(hidden), &root) == nil && len(root.Content) == 1 {
		d.root = root.Content[0]
	}
	return d
}

// indentation returns the number of white space characters at the start of a line.
func (d *document) indentation(line int) int {
	if line > len(d.lines) {
		return 0
	}
	text := d.lines[line-1]
	return len(text) - len(strings.TrimLeft(text, " \t"))
}

var (
	refersTo   = regexp.MustCompile(` refers to (Task|Pipeline) (.*?), which `)
	namedThere = regexp.MustCompile(`{{[^{}]*}}`)
)

// find returns the place that a clue describes.
func (d *document) find(c clue) (line, column int, found bool) {
	if c.annotation != "" {
		return d.findAnnotation(c)
	}
	placeholder := c.placeholder
	if placeholder == "" {
		placeholder = namedThere.FindString(c.rest)
	}
	if placeholder != "" {
		return d.findText(placeholder, c)
	}
	if d.root == nil {
		return 0, 0, false
	}
	if said := refersTo.FindStringSubmatch(c.rest); said != nil {
		return where(referring(d.root, strings.ToLower(said[1])+"Ref", said[2]))
	}
	return 0, 0, false
}

func where(n *yaml.Node) (line, column int, found bool) {
	if n == nil {
		return 0, 0, false
	}
	return n.Line, n.Column, true
}

// findAnnotation looks for an annotation's value, and for the place in it if it is an expression.
func (d *document) findAnnotation(c clue) (line, column int, found bool) {
	if d.root == nil {
		return 0, 0, false
	}
	value, whole := yamlerror.Node(d.root, yamlerror.Path{"metadata", "annotations", c.annotation})
	if !whole {
		return 0, 0, false
	}
	if c.placeholder != "" {
		d.from = value.Line - 1 // the first one that is not above it
		return d.findText(c.placeholder, c)
	}
	line, column = d.within(value, c)
	return line, column, true
}

// within is a row and a column of a scalar's text.
func (d *document) within(value *yaml.Node, c clue) (line, column int) {
	places := d.written(value)
	rows := strings.SplitAfter(value.Value, "\n")
	if places == nil || c.row < 1 || c.row > len(rows) || c.column < 1 {
		return value.Line, value.Column
	}
	offset := min(c.column-1, utf8.RuneCountInString(rows[c.row-1]))
	for _, row := range rows[:c.row-1] {
		offset += utf8.RuneCountInString(row)
	}
	at := places[min(offset, len(places)-1)]
	return at.line, at.column
}

// findText finds a placeholder in the lines of the document, and the place inside it. A message
// writes it with one space inside the braces, and may cut it.
func (d *document) findText(placeholder string, c clue) (line, column int, found bool) {
	if c.Column > 0 {
		d.from = c.Line - 1 // the value that it is in begins there
	}
	name, _, _ := strings.Cut(strings.TrimSpace(strings.Trim(placeholder, "{}")), "…")
	written, err := regexp.Compile(`{{[ \t]*` + regexp.QuoteMeta(name))
	if err != nil {
		return 0, 0, false
	}
	for i := d.from; i < d.to; i++ {
		at := written.FindStringIndex(d.lines[i])
		if at == nil {
			continue
		}
		column = utf8.RuneCountInString(d.lines[i][:at[0]]) + 1
		text := d.lines[i][at[0]:]
		if expression := strings.Index(text, ":"); c.row == 1 && expression > 0 {
			rest := text[expression+1:]
			column += expression + 1 + len(rest) - len(strings.TrimLeft(rest, " ")) + c.column - 1
		}
		return i + 1, column, true
	}
	return 0, 0, false
}

// at returns the first node at a path that fits. It searches each item of a list, because the path
// names no index.
func at(n *yaml.Node, path []string, fits func(*yaml.Node) bool) *yaml.Node {
	switch {
	case n.Kind == yaml.AliasNode:
		return at(n.Alias, path, fits)
	case len(path) == 0 && fits(n):
		return n
	case n.Kind == yaml.SequenceNode:
		return first(n.Content, path, fits)
	case n.Kind == yaml.MappingNode && len(path) > 0:
		var values []*yaml.Node
		for pair := range slices.Chunk(n.Content, 2) {
			if pair[0].Value == path[0] {
				values = append(values, pair[1])
			}
		}
		return first(values, path[1:], fits)
	}
	return nil
}

// first returns what is found in the first of some nodes.
func first(nodes []*yaml.Node, path []string, fits func(*yaml.Node) bool) *yaml.Node {
	for _, n := range nodes {
		if found := at(n, path, fits); found != nil {
			return found
		}
	}
	return nil
}

// referring returns the name in a reference to something.
func referring(n *yaml.Node, reference, name string) *yaml.Node {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == reference {
			if found := at(child, []string{"name"}, func(n *yaml.Node) bool { return n.Value == name }); found != nil {
				return found
			}
		}
		if found := referring(child, reference, name); found != nil {
			return found
		}
	}
	return nil
}
