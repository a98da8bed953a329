// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// The limits of what authors write. They are checked before a tree is built. A value takes up to
// some 500 bytes of memory while a document is read. It takes up to some 180 bytes for as long as
// the event is planned.
const (
	// maxCounted limits the values of one document, as count counts them. They take some 20 MiB
	// while the document is read. A document of 600 lines, which is a long one, has 3,000 values.
	maxCounted = 60_000
	// maxEventNodes limits the values of .tekton together with those that one PipelineRun refers
	// to: some 20 MiB. The largest public repositories have some 200 PipelineRuns of some 500
	// values each.
	maxEventNodes = 160_000
	// maxEventText limits their bytes of text, with aliases followed.
	maxEventText = 8 << 20
	// maxTagPrefix limits the text that a %TAG directive puts in front of each tag.
	maxTagPrefix = 256
)

// reasonTooMuch is the reason of a fault that is about all definitions of an event.
const reasonTooMuch = "TooMuchYAML"

// budget counts what has been read for one event.
type budget struct{ nodes, text, searched int }

// over reports whether a budget of the event is exceeded.
func (b budget) over() bool { return b.nodes > maxEventNodes || b.text > maxEventText }

// tooMuch returns the fault of the document that exceeds a budget.
func tooMuch(place string) error {
	return fault.Invalidf(
		reasonTooMuch,
		"%s: with this file, .tekton and the Tasks and Pipelines that it refers to have more than %d values or %d MiB of text, the limit for one event. "+
			"Remove what is not used, move long scripts and lists into an image, or refer to Tasks with a resolver",
		place,
		maxEventNodes,
		maxEventText>>20,
	)
}

// count returns at least as many values as the parser creates from a text. It reads byte by byte
// and builds nothing. It may count a part of a script as a value, but it never counts too few.
//
// Each value follows a mark: "- ", "? " or ": " in a block, and "[", "{" or "," in a flow
// collection. A mark brings at most its collection, a key and a value: "a: b" is a mapping and two
// values. In a flow collection a comma brings what is between it and the next: a mapping of one
// pair, its key and its value. "#" is a comment, which the parser keeps as well.
func count(text string) int {
	n := 2 // the document and its value
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ',', '{':
			n += 3
		case '[':
			n += 4
		case '#':
			n += 2
		case ':', '?', '-':
			if i+1 == len(text) || text[i+1] <= ' ' || text[i+1] > '~' { // a blank or a line end, of which Unicode has more
				n += 3
			}
		}
	}
	return n
}

// countable refuses a document from which the parser would create too many values.
func (d *document) countable(text string) error {
	if count(text) > maxCounted {
		return fault.Invalidf(
			reasonBadYAML,
			"%s: the document holds too many values: at most some %d are read of one. Split it, or move long scripts and lists into an image",
			d.place(), maxCounted,
		)
	}
	// The parser also reads UTF-16.
	if strings.HasPrefix(text, "\xfe\xff") || strings.HasPrefix(text, "\xff\xfe") {
		text = strings.ReplaceAll(text, "\x00", "")
	}
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "%TAG")
		if !found {
			return nil
		}
		if end := strings.IndexAny(after, "\r\n"); end > maxTagPrefix || end < 0 && len(after) > maxTagPrefix {
			return fault.Invalidf(reasonBadYAML, "%s: a %%TAG directive is longer than %d bytes", d.place(), maxTagPrefix)
		}
		rest = after
	}
}
