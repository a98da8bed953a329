// SPDX-License-Identifier: Apache-2.0

// Package caret shows an author's mistake as compilers do: the place, the message, the line, and a
// caret below it. The controller's messages name the file, and mostly the line and column. If they
// do not, this package searches the text of the file for the place.
package caret

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/terminal"
	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resolve"
)

// Place is where a mistake is. Line and Column count from 1, and are 0 if they are unknown. Columns
// count characters.
type Place struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// Sources are the files that were read.
type Sources struct {
	set   *resolve.Set
	texts map[string]string
	// begins are the first lines of the documents, by file and index.
	begins map[string]map[int]int
}

// Read adds the files of an event.
func Read(files []git.File) *Sources {
	s := &Sources{set: resolve.Load(files), texts: map[string]string{}, begins: map[string]map[int]int{}}
	for _, def := range s.set.Definitions() {
		if s.begins[def.File] == nil {
			s.begins[def.File] = map[int]int{}
		}
		s.begins[def.File][def.Document] = s.set.Line(def)
	}
	for _, file := range files {
		s.texts[file.Path] = strings.TrimPrefix(string(file.Data), "\ufeff")
	}
	return s
}

// link is one part of a message before the description of the mistake. The message
// ".tekton/a.yaml:3: annotation pipelinesascode.tekton.dev/task: tasks/b.yaml:7: this is not YAML"
// has three links.
var (
	located    = regexp.MustCompile(`^(.+?):([0-9]+)(?::([0-9]+))?$`)
	annotation = regexp.MustCompile(`^(?:the )?annotation ([A-Za-z0-9._/-]+)\b`)
	inner      = regexp.MustCompile(`^([0-9]+):([0-9]+)$`)
	whole      = regexp.MustCompile(`^{{.*}}$`)
	pipeline   = regexp.MustCompile(`^pipeline \S+$`)
)

// expressionAnnotation is the name that messages give to the annotation on-cel-expression.
const expressionAnnotation = "on-cel-expression"

// clue is what a message says about the place of its mistake.
type clue struct {
	Place
	// annotation is the key of an annotation. placeholder is the text of a placeholder.
	annotation, placeholder string
	// row and column are those within an expression.
	row, column int
	// rest is the description of the mistake.
	rest string
}

// Find returns the place of the mistake in a message about a document.
func (s *Sources) Find(file string, document int, message string) Place {
	c := s.clue(file, message)
	if c.Column > 0 && c.placeholder == "" {
		return c.Place
	}
	text, known := s.texts[c.File]
	if !known {
		return Place{File: c.File, Line: c.Line}
	}
	begin := max(c.Line, 1)
	if c.Line == 0 && c.File == file {
		begin = max(s.begins[file][document], 1)
	}
	d := newDocument(text, begin)
	line, column, found := d.find(c)
	switch {
	case found:
		return Place{File: c.File, Line: line, Column: column}
	case c.Column > 0:
		return c.Place
	case c.Line == 0 && document == 0 && c.rest == message:
		return Place{File: c.File} // it is about the file as a whole
	}
	return Place{File: c.File, Line: begin, Column: d.indentation(begin) + 1}
}

// clue reads the parts of a message that name a place, up to the description of the mistake.
func (s *Sources) clue(file, message string) clue {
	c := clue{Place: Place{File: file}, rest: message}
	for {
		part, rest, found := strings.Cut(c.rest, ": ")
		if whole := placeholderAt(c.rest); whole != "" { // it may hold a colon of its own
			part, rest, found = whole, strings.TrimPrefix(c.rest[len(whole):], ": "), true
		}
		if !found || !c.take(s, part) {
			break
		}
		c.rest = rest
	}
	if key := annotation.FindStringSubmatch(c.rest); key != nil {
		c.annotation = key[1]
	}
	return c
}

// placeholderAt returns the placeholder that a text begins with.
func placeholderAt(text string) string {
	if !strings.HasPrefix(text, "{{") {
		return ""
	}
	end := strings.Index(text, "}}")
	if end < 0 {
		return ""
	}
	return text[:end+2]
}

// take reads one part. It returns false at the description of the mistake.
func (c *clue) take(s *Sources, part string) bool {
	if place := located.FindStringSubmatch(part); place != nil {
		if _, known := s.texts[place[1]]; known {
			line, _ := strconv.Atoi(place[2])
			column, _ := strconv.Atoi(place[3])
			*c = clue{Place: Place{File: place[1], Line: line, Column: column}}
			return true
		}
	}
	if at := inner.FindStringSubmatch(part); at != nil && (c.annotation != "" || c.placeholder != "") {
		c.row, _ = strconv.Atoi(at[1])
		c.column, _ = strconv.Atoi(at[2])
		return true
	}
	key := annotation.FindStringSubmatch(part)
	_, isFile := s.texts[part]
	switch {
	case isFile:
		*c = clue{Place: Place{File: part}}
	case key != nil && key[0] == part:
		c.annotation = key[1]
	case part == expressionAnnotation:
		c.annotation = pipelinesascode.OnCELExpression
	case whole.MatchString(part):
		c.placeholder = part
	default:
		return pipeline.MatchString(part)
	}
	return true
}

// Show writes a mistake as "file:line:column: error: message", the line and a caret.
func (s *Sources) Show(t terminal.Terminal, at Place, message string) string {
	return s.show(t, at, t.Paint(terminal.Red, "error"), message)
}

// Warn writes a possible mistake in the same way.
func (s *Sources) Warn(t terminal.Terminal, at Place, message string) string {
	return s.show(t, at, t.Paint(terminal.Yellow, "warning"), message)
}

func (s *Sources) show(t terminal.Terminal, at Place, how, message string) string {
	var b strings.Builder
	b.WriteString(Plain(at.File))
	for _, number := range []int{at.Line, at.Column} {
		if number > 0 {
			fmt.Fprintf(&b, ":%d", number)
		}
	}
	fmt.Fprintf(&b, ": %s: %s\n", how, Plain(withoutPlace(at.File, message)))
	lines := strings.Split(s.texts[at.File], "\n")
	if at.Line < 1 || at.Line > len(lines) || at.Column < 1 {
		return b.String()
	}
	line := strings.TrimRight(lines[at.Line-1], "\r")
	gutter := strconv.Itoa(at.Line)
	fmt.Fprintf(&b, " %s | %s\n", gutter, strings.Map(harmless, line))
	fmt.Fprintf(&b, " %s | %s%s\n",
		strings.Repeat(" ", len(gutter)), blank(line, at.Column-1), t.Paint(terminal.Bold, "^"))
	return b.String()
}

// Plain returns an author's text on one line, without characters that control a terminal: line
// breaks, escape sequences and marks that change the direction of writing.
func Plain(text string) string {
	return strings.ReplaceAll(strings.Map(harmless, text), "\t", " ")
}

// harmless returns the character, or a space of the same width if the character controls a
// terminal. It keeps tabs.
func harmless(c rune) rune {
	if c != '\t' && unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) || c == '\u2028' || c == '\u2029' {
		return ' '
	}
	return c
}

// withoutPlace returns a message without the file, the line and the column at its start.
func withoutPlace(file, message string) string {
	part, rest, found := strings.Cut(message, ": ")
	if place := located.FindStringSubmatch(part); place != nil {
		part = place[1]
	}
	if found && part == file {
		return rest
	}
	return message
}

// blank returns white space that is as wide as the start of a line.
func blank(line string, characters int) string {
	wide := []rune(strings.Repeat(" ", characters))
	for i, c := range []rune(line) {
		if c == '\t' && i < characters {
			wide[i] = c
		}
	}
	return string(wide)
}
