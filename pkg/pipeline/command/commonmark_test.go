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

// unseen returns the ranges of a comment that a CommonMark library takes for code, for quotes, or
// for HTML whose text a page does not show as text.
func unseen(comment []byte) (ranges []text.Segment) {
	add := func(segments *text.Segments) {
		if segments != nil {
			ranges = append(ranges, segments.Sliced(0, segments.Len())...)
		}
	}
	root := goldmark.DefaultParser().Parse(text.NewReader(comment))
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			add(n.Lines())
		case *ast.HTMLBlock:
			if n.HTMLBlockType < ast.HTMLBlockType6 { // the others are elements such as <div>, which show text
				add(n.Lines())
				ranges = append(ranges, n.ClosureLine)
			}
		case *ast.RawHTML:
			add(n.Segments)
		case *ast.Blockquote:
			_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
				if entering && n.Type() == ast.TypeBlock {
					add(n.Lines())
				}
				return ast.WalkContinue, nil
			})
		}
		return ast.WalkContinue, nil
	})
	return ranges
}

// misread returns a line in which this package finds a command, and CommonMark no text.
func misread(comment string) string {
	comment = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(comment)
	seen, hidden := lines(comment), unseen([]byte(comment))
	start := 0
	for i, line := range strings.Split(comment, "\n") {
		if i < len(seen) {
			if _, _, isCommand := (&reader{}).begins(seen[i]); isCommand {
				at := start + strings.Index(line, "/")
				if slices.ContainsFunc(hidden, func(s text.Segment) bool { return s.Start <= at && at < s.Stop }) {
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
		"``", "\t> ", "-\n", "# x <?\n",
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
