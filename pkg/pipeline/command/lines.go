// SPDX-License-Identifier: Apache-2.0

package command

import (
	"regexp"
	"strings"
)

const (
	// codeIndent is the spaces in front of a line that make it code
	// (https://spec.commonmark.org/0.31.2/#indented-code-blocks).
	codeIndent = "    "
	// blanks are what Markdown takes for white space. Other spaces are text to it.
	blanks = " \t"
)

// lines returns the lines of a comment in which a command may begin, and an empty one for each
// other. No command begins in a quote, a code block, the definition of a link, or HTML that a page
// does not show. In doubt none begins: Markdown has more rules than this package. There are two
// exceptions, which count as text: code, a tag, a link or an image that is on several lines of a
// paragraph; and what is in or below an element such as <span> that begins a block.
func lines(comment string) []string {
	comment = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(comment)
	if len(comment) > maxComment {
		comment = comment[:strings.LastIndexByte(comment[:maxComment], '\n')+1]
	}
	m := markdown{lines: strings.Split(comment, "\n"), scans: map[*regexp.Regexp]scan{}}
	seen := make([]string, len(m.lines))
	for m.current = range m.lines {
		seen[m.current] = m.line(m.lines[m.current])
	}
	return seen
}

// inList matches what may stand in front of a block: a few spaces, and markers of lists.
const inList = `^( {0,3}(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*)`

var beforeBlock = regexp.MustCompile(inList)

// markdown knows what the current line of a comment is part of.
type markdown struct {
	// lines are those of the comment, and current is the index of the current one.
	lines   []string
	current int
	// scans are what is known of the lines below, by the end of HTML that a page does not show.
	scans map[*regexp.Regexp]scan
	// fence is what closes the code block, "" outside of one.
	fence string
	// html is what closes the block of HTML, nil outside of one.
	html *regexp.Regexp
	// item is the column in which the block begins within a list. A line that begins before it is
	// outside of the item, and of the block.
	item int
	// page is true in a block of HTML that a page shows, and so in an element such as <details>: up
	// to an empty line it holds no other block. pageItem is its column, as item is.
	page     bool
	pageItem int
	// list is true if the line may be in an item of a list, or in a footnote, which lines above it
	// have begun: its indentation may be that of the item.
	list bool
	// afterEmpty is true if the line above is empty.
	afterEmpty bool
	// tag is the HTML element of which everything is shown as it is, "" outside of one.
	tag string
	paragraph
}

// paragraph is what is known of the paragraph of which a line may be.
type paragraph struct {
	// heading is true in a heading, which ends with its line.
	heading bool
	// hidden is what closes the HTML comment, or the like, that began within a line. It is nil
	// outside of one.
	hidden *regexp.Regexp
	// inDoubt is true if a backtick of the paragraph may begin or end code in a way that is not
	// read.
	inDoubt bool
	// quoted is true in a quote and in the lines below it, which belong to its last paragraph until
	// one is empty (https://spec.commonmark.org/0.31.2/#lazy-continuation-line).
	quoted bool
	// defines is true from a line on that may begin the definition of a link.
	defines bool
}

// line returns what people see of a line in which a command may begin, "" for any other.
func (m *markdown) line(line string) string {
	if m.inBlock(line) {
		return ""
	}
	m.opensPage(line)
	m.inItem(line)
	if m.endsParagraph(line) {
		return ""
	}
	m.findDefinition(line)
	wasHidden := m.hidden != nil || m.tag != ""
	seen := m.shown(line)
	m.element(m.withoutCode(seen))
	if isCode(line) || wasHidden || m.tag != "" || m.quoted || m.defines {
		return ""
	}
	return seen
}

// endsParagraph notes whether a line ends the paragraph above it, and reports whether it is of
// none: it is empty, or in a quote, or begins code or HTML.
func (m *markdown) endsParagraph(line string) bool {
	isQuote := quotePattern.MatchString(line) && (m.list || !isCode(line))
	isBlock := isQuote || m.opens(line) || m.opensHTML(line)
	isHeading := !isBlock && !m.page && headingPattern.MatchString(line)
	if isBlock || isHeading || m.heading || isEmpty(line) {
		m.paragraph = paragraph{quoted: isQuote, heading: isHeading}
	}
	return isBlock || isEmpty(line)
}

// isCode reports whether a line is code, unless it is in an item of a list or in a paragraph.
func isCode(line string) bool {
	return strings.HasPrefix(line, codeIndent) || strings.HasPrefix(strings.TrimLeft(line, " "), "\t")
}

// inBlock reports whether a line belongs to the code or HTML that lines above it have opened.
func (m *markdown) inBlock(line string) bool {
	text := strings.TrimLeft(line, " ")
	column, empty := len(line)-len(text), isEmpty(line)
	switch leaves := !empty && column < m.item; {
	case m.page && (empty || column < m.pageItem): // so what seemed to begin in it did not
		m.page, m.pageItem = false, 0
		fallthrough
	case leaves:
		m.fence, m.html, m.item = "", nil, 0
	}
	switch {
	case m.fence != "":
		if m.closes(line) {
			m.fence, m.item = "", 0
		}
		return true
	case m.html != nil:
		m.inHTML(line)
		return true
	}
	return false
}

// isEmpty reports whether Markdown takes a line for an empty one, which ends a paragraph.
func isEmpty(line string) bool { return strings.Trim(line, blanks) == "" }

// itemPattern is the beginning of an item of a list, or of a footnote.
var itemPattern = regexp.MustCompile(`^[ \t]*(?:(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]|$)|\[\^[^\]]+\]:)`)

// inItem notes whether a line may be in an item. One that is not indented, below an empty one, is
// outside.
func (m *markdown) inItem(line string) {
	switch isIndented := strings.Trim(line[:min(1, len(line))], blanks) == ""; {
	case itemPattern.MatchString(line):
		m.list = true
	case m.afterEmpty && !isIndented:
		m.list = false
	}
	m.afterEmpty = isEmpty(line)
}

// headingPattern is a heading (https://spec.commonmark.org/0.31.2/#atx-headings), in a list or not.
// It ends the paragraph above it, as a numbered item does not always.
var headingPattern = regexp.MustCompile(`^ {0,3}(?:[-*+][ \t]+)*#{1,6}(?:[ \t]|$)`)

// quotePattern is the beginning of a line of a quote, in a list or not.
var quotePattern = regexp.MustCompile(`^[ \t]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*>`)

// elementPattern is the beginning of an HTML element that is shown as it is
// (https://spec.commonmark.org/0.31.2/#html-blocks), in lower case.
var elementPattern = regexp.MustCompile(`<(pre|script|style|textarea)(?:[ \t>]|$)`)

// element notes which element a line leaves open. Only its own end closes it.
func (m *markdown) element(line string) {
	for line = strings.ToLower(line); ; {
		if m.tag == "" {
			found := elementPattern.FindStringSubmatchIndex(line)
			if found == nil {
				return
			}
			m.tag, line = line[found[2]:found[3]], line[found[3]:]
		}
		_, behind, found := strings.Cut(line, "</"+m.tag+">")
		if !found {
			return
		}
		m.tag, line = "", behind
	}
}

// pagePattern is the beginning of a block of HTML that a page shows, after what may stand in front
// of it (https://spec.commonmark.org/0.31.2/#html-blocks, the sixth kind).
var pagePattern = regexp.MustCompile(`(?i)^</?(?:address|article|aside|base|basefont|blockquote|body|caption|center|` +
	`col|colgroup|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|` +
	`header|hr|html|iframe|legend|li|link|main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|` +
	`summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul)(?:[ \t>]|/>|$)`)

// opensPage notes whether a line begins such a block.
func (m *markdown) opensPage(line string) {
	before := beforeBlock.FindString(line)
	if !m.page && pagePattern.MatchString(line[len(before):]) {
		m.page, m.pageItem, m.hidden = true, itemOf(before), nil
	}
}

// fencePattern is the beginning of a code block, in a list or not
// (https://spec.commonmark.org/0.31.2/#fenced-code-blocks).
var fencePattern = regexp.MustCompile(inList + "(```+|~~~+)(.*)$")

// opens reports whether a line opens a code block.
func (m *markdown) opens(line string) bool {
	found := fencePattern.FindStringSubmatch(line)
	if found == nil {
		return false
	}
	before, fence, info := found[1], found[2], found[3]
	if fence[0] == '`' && strings.Contains(info, "`") { // code within a line
		return false
	}
	m.fence, m.item = fence, itemOf(before)
	return true
}

// itemOf returns the column of what stands behind markers of lists, 0 without any.
func itemOf(before string) int {
	if strings.Trim(before, blanks) == "" {
		return 0
	}
	return len(before)
}

// closes reports whether a line closes the code block.
func (m *markdown) closes(line string) bool {
	text := strings.TrimLeft(line, " ")
	end := strings.TrimRight(text, blanks)
	return len(line)-len(text) < m.item+len(codeIndent) && len(end) >= len(m.fence) && strings.Trim(end, m.fence[:1]) == ""
}

// hidingPattern is the beginning of HTML that a page does not show
// (https://spec.commonmark.org/0.31.2/#raw-html): a comment, a processing instruction, CDATA, or a
// declaration. hidingEnds are their ends in this order.
var hidingPattern = regexp.MustCompile(`(<!--)|(<\?)|(<!\[CDATA\[)|(<![A-Za-z])`)

//nolint:gochecknoglobals // regular expressions
var hidingEnds = [...]*regexp.Regexp{
	regexp.MustCompile(`-->`), regexp.MustCompile(`\?>`), regexp.MustCompile(`\]\]>`), regexp.MustCompile(`>`),
}

// hides returns where the first such HTML of a line begins, and what closes it, nil if there is
// none.
func hides(line string) (at []int, end *regexp.Regexp) {
	at = hidingPattern.FindStringSubmatchIndex(line)
	for i, e := range hidingEnds {
		if at != nil && at[2+2*i] >= 0 {
			return at[:2], e
		}
	}
	return nil, nil
}

// elementEnd closes a block that an element opened.
var elementEnd = regexp.MustCompile(`(?i)</(?:pre|script|style|textarea)>`)

// opensHTML reports whether a line begins a block of HTML that a page does not show as text
// (https://spec.commonmark.org/0.31.2/#html-blocks).
func (m *markdown) opensHTML(line string) bool {
	before := beforeBlock.FindString(line)
	html := line[len(before):]
	at, end := hides(html)
	if at == nil || at[0] > 0 {
		element := elementPattern.FindStringIndex(strings.ToLower(html))
		if element == nil || html[0] != '<' || element[0] > 0 {
			return false
		}
		end = elementEnd
	}
	m.html, m.item = end, itemOf(before)
	m.inHTML(line)
	return true
}

// inHTML notes what a line of such a block leaves open.
func (m *markdown) inHTML(line string) {
	if m.html == elementEnd {
		m.element(line)
	}
	if m.html.MatchString(line) {
		m.html, m.item = nil, 0
	}
}
