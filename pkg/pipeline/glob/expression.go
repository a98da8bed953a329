// SPDX-License-Identifier: Apache-2.0

package glob

import (
	"regexp"
	"regexp/syntax"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// maxParts limits the parts of a regular expression with its repetitions spelt out. For example,
// ([a-z]{100}){10} is short, but has 1000 parts.
const maxParts = 1000

// CompileExpression reads a regular expression of at most maxPattern bytes. It counts the parts
// before it spells out any repetition. RE2 takes at most one step for each part and each byte of
// the text. The error is a fault.Invalid.
func CompileExpression(pattern string) (expression *regexp.Regexp, parts int, err error) {
	if len(pattern) > maxPattern {
		return nil, 0, badExpression(pattern, "has %d bytes, at most %d are read", len(pattern), maxPattern)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, 0, badExpression(pattern, "is none: %w", err)
	}
	if parts = size(parsed); parts > maxParts {
		return nil, 0, badExpression(pattern, "has %d parts with its repetitions spelt out, at most %d are read: repeat less",
			parts, maxParts)
	}
	if expression, err = regexp.Compile(pattern); err != nil {
		return nil, 0, badExpression(pattern, "is none: %w", err)
	}
	return expression, parts, nil
}

func badExpression(pattern, format string, args ...any) error {
	shown := text.Shorten(pattern, maxShown, text.Bytes)
	return fault.Invalidf(reasonBadExpression, "the regular expression %q "+format, append([]any{shown}, args...)...)
}

// size returns how many parts an expression has with its repetitions spelt out.
func size(expression *syntax.Regexp) int {
	n := 1
	if expression.Op == syntax.OpLiteral {
		n = len(expression.Rune)
	}
	for _, part := range expression.Sub {
		n += size(part)
	}
	if expression.Op == syntax.OpRepeat {
		n *= max(expression.Min, expression.Max, 1)
	}
	return n
}
