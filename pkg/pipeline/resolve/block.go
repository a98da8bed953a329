// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// block is a block scalar (| or >) in which placeholders fill whole lines. PaC replaces
// placeholders before it reads YAML. So a line whose placeholders have no value is a blank line for
// YAML. YAML may strip or fold it, and ignores it when it measures the indentation.
type block struct {
	// text is the scalar when each of these lines has a value.
	text string
	// source is the scalar as it is written, from its mark on and moved to the left.
	source string
}

// onlyPlaceholders matches a line that has only placeholders and white space.
var onlyPlaceholders = regexp.MustCompile(`(?m)^[ \t]*(?:{{[^{}\r\n]{2,}}}[ \t]*)+\r?$`)

// blockMark matches the mark of a block scalar at the end of a line. Its groups are style,
// indentation and chomping.
var blockMark = regexp.MustCompile(`([|>])(?:([1-9])?([-+])?|([-+])([1-9]))(?:[ \t]+#.*)?[ \t]*$`)

// block reads a block scalar. It returns the text, or a block if placeholders fill whole lines of
// it.
func (b *builder) block(node *yaml.Node, text string) any {
	if b.source == "" || !strings.Contains(text, "{{") {
		return text
	}
	if known, found := b.blocks[node]; found {
		return known
	}
	var read any = text
	source := b.masks.restore(b.written(node))
	b.text += len(source)
	if onlyPlaceholders.MatchString(source) {
		if again, is := readBlock(source); is && again == text { // otherwise it was not found where it was looked for
			read = block{text: text, source: source}
		}
	}
	b.blocks[node] = read
	return read
}

// written returns how a block scalar is written, or "" if it is not found. It is about as long as
// the text, and is stored for each alias.
func (b *builder) written(node *yaml.Node) string {
	if b.lines == nil {
		b.lines = make([]string, 0, strings.Count(b.source, "\n")+1)
		b.lines = slices.AppendSeq(b.lines, strings.Lines(b.source))
	}
	if node.Line < 1 || node.Line > len(b.lines) {
		return ""
	}
	mark := blockMark.FindStringSubmatch(strings.TrimRight(b.lines[node.Line-1], "\r\n"))
	if mark == nil {
		return ""
	}
	header, keeps, written := mark[1]+mark[3]+mark[4], mark[3]+mark[4] == "+", mark[2]+mark[5] != ""
	indented := 0 // what the first line has beyond the indentation
	if written {
		header += "1"
		indented = firstIndentation(strings.SplitAfter(node.Value, "\n"))
	}
	lines := b.lines[node.Line:]
	indentation, end := firstIndentation(lines)-indented, 0
	for i, line := range lines {
		blank := strings.TrimSpace(line) == ""
		if !blank && spaces(line) < indentation {
			break
		}
		if !blank || keeps {
			end = i + 1
		}
	}
	var s strings.Builder
	s.WriteString(header + "\n")
	for _, line := range lines[:end] {
		s.WriteString(line[min(spaces(line), max(indentation-1, 0)):])
	}
	return s.String()
}

// firstIndentation returns the indentation of the first line that is not blank.
func firstIndentation(lines []string) int {
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			return spaces(line)
		}
	}
	return 0
}

func spaces(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// readBlock returns the text of a block scalar's source.
func readBlock(source string) (text string, is bool) {
	hidden, masks := mask("a: " + source)
	var root yaml.Node
	if source == "" || yaml.Unmarshal([]byte(hidden), &root) != nil || len(root.Content) != 1 ||
		len(root.Content[0].Content) != 2 {
		return "", false
	}
	value := root.Content[0].Content[1]
	return masks.restore(value.Value), value.Kind == yaml.ScalarNode
}

// block replaces the placeholders of a block scalar.
func (x *expander) block(v block) any {
	x.filled = true
	text := v.text
	if source := onlyPlaceholders.ReplaceAllStringFunc(v.source, x.withoutEmpty); source != v.source {
		if read, is := readBlock(source); is {
			text = read
		}
	}
	placed, err := x.scope.Place(text, &x.left)
	x.note(err)
	return placed
}

// withoutEmpty returns the white space of a line of placeholders if none of them has a value, the
// line as it is otherwise.
func (x *expander) withoutEmpty(line string) string {
	left := x.left // what is placed is counted with the whole text
	rest := template.Replace(line, func(placeholder string) string {
		value, err := x.scope.Place(placeholder, &left)
		if x.note(err); err != nil || value != "" {
			return placeholder
		}
		return ""
	})
	if strings.TrimSpace(rest) != "" {
		return line
	}
	return rest
}
