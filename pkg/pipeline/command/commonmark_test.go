// SPDX-License-Identifier: Apache-2.0

package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// ranges returns the ranges of a comment that a CommonMark library takes for text, and those that
// it takes for code, for quotes, or for HTML whose text a page does not show as text.
func ranges(comment []byte) (shown, hidden []text.Segment) {
	add := func(to *[]text.Segment, segments *text.Segments) {
		if segments != nil {
			*to = append(*to, segments.Sliced(0, segments.Len())...)
		}
	}
	root := goldmark.DefaultParser().Parse(text.NewReader(comment))
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Paragraph, *ast.TextBlock, *ast.Heading:
			add(&shown, n.Lines())
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			add(&hidden, n.Lines())
		case *ast.HTMLBlock:
			if n.HTMLBlockType >= ast.HTMLBlockType6 { // elements such as <div>, which show text
				add(&shown, n.Lines())
				break
			}
			add(&hidden, n.Lines())
			hidden = append(hidden, n.ClosureLine)
		case *ast.RawHTML:
			add(&hidden, n.Segments)
		case *ast.Blockquote:
			_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
				if entering && n.Type() == ast.TypeBlock {
					add(&hidden, n.Lines())
				}
				return ast.WalkContinue, nil
			})
		}
		return ast.WalkContinue, nil
	})
	return shown, hidden
}

// misread returns a line in which this package finds a command, and CommonMark no text.
func misread(comment string) string {
	comment = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(comment)
	seen, start := lines(comment), 0
	shown, hidden := ranges([]byte(comment))
	for i, line := range strings.Split(comment, "\n") {
		if i < len(seen) {
			if _, _, isCommand := (&reader{}).begins(seen[i]); isCommand {
				at := start + strings.Index(line, "/")
				has := func(s text.Segment) bool { return s.Start <= at && at < s.Stop }
				if slices.ContainsFunc(hidden, has) || !slices.ContainsFunc(shown, has) {
					return line
				}
			}
		}
		start += len(line) + 1
	}
	return ""
}

// pieces are what comments of these tests are made of.
func pieces() []string {
	return []string{
		"/test\n", "\n", "x\n", " ", "    ", "\t", "> ", "- ", "1. ", "```\n", "~~~ x\n", "`", "<!--", "-->", "<!---->",
		"<pre>", "</pre>", "<script>",
		"<div>", "<details>\n", "<?", "?>", "<![CDATA[", "]]>", "<!A", ">", "\\", "# ", "***\n",
		"``", "\t> ", "-\n", "# x <?\n", "[x]:", "[", "]: x", "\"",
	}
}

// Whatever a few pieces of Markdown make of the line below them: where it is not text, it is no
// command.
func TestNoCommandBeginsWhereCommonMarkSeesNoText(t *testing.T) {
	all, found := pieces(), 0
	var try func(comment string, left int)
	try = func(comment string, left int) {
		if line := misread(comment + "\n/test\n"); line != "" && found < 40 {
			found++
			t.Errorf("%q: a command in %q", comment+"\n/test\n", line)
		}
		if left == 0 {
			return
		}
		for _, piece := range all {
			try(comment+piece, left-1)
		}
	}
	try("", 3)
}

// FuzzCommonMark tries longer comments.
func FuzzCommonMark(f *testing.F) {
	f.Add([]byte{0, 1, 2})
	f.Add([]byte("> - ``` <!-- -->"))
	for _, seed := range [][]string{
		{"# ", "x\n", "<?", "\n", "/test\n", "?>"}, {"# x <?\n", "/test\n", "?>"}, {"x\n", "<!A", "\n", "/test\n", ">"},
		{"\t> ", "x\n", "/test\n"}, {"- ", "x\n", "\t> ", "x\n", "/test\n"}, {"-\n", "\t> ", "x\n", "/test\n"},
		{"``", "<!--", "`", "\n", "/test\n", "-->"}, {"``", "`", " ", "<?", "``", "<?", "\n", "/test\n", "?>"},
		{"x\n", "<!--", "\n", "***\n", "<!--", "\n", "/test\n", "-->"},
		{"[x]:", "\n", "/test\n"}, {"[", "\n", "/test\n", "]: x", "\n"}, {"[", "]: x", "\n", "\"", "\n", "/test\n", "\""},
	} {
		var program []byte
		for _, piece := range seed {
			program = append(program, byte(slices.Index(pieces(), piece)))
		}
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		var comment strings.Builder
		for all := pieces(); len(program) > 0; program = program[1:] {
			comment.WriteString(all[int(program[0])%len(all)])
		}
		if line := misread(comment.String()); line != "" {
			t.Errorf("%q: a command in %q", comment.String(), line)
		}
	})
}
