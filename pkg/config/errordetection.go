// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"regexp"
	"slices"
)

// ErrorDetection says which lines of the logs of failed steps become annotations on source lines.
type ErrorDetection struct {
	// Detect is false if no log is searched.
	Detect bool
	// Lines is how many of the last lines of one step's log are searched.
	Lines int
	// Pattern matches such a line. It has the three groups below.
	Pattern *regexp.Regexp
}

// The groups of the pattern.
const (
	GroupFilename = "filename"
	GroupLine     = "line"
	GroupError    = "error"
)

const (
	defaultDetectionLines = 50
	// maxDetectionLines is also what -1 means, which is all lines in Pipelines-as-Code.
	maxDetectionLines = 10_000
	// maxPattern bounds the pattern, in bytes: the time for one line grows with it.
	maxPattern = 1024
	// standardPattern matches what most compilers and linters write.
	standardPattern = `^(?P<filename>[^:]*):(?P<line>[0-9]+):(?P<column>[0-9]+)?([ ]*)?(?P<error>.*)`
)

func defaultErrorDetection() ErrorDetection {
	return ErrorDetection{
		Detect: true, Lines: defaultDetectionLines, Pattern: regexp.MustCompile(standardPattern),
	}
}

func (p *parser) errorDetection(standard, previous ErrorDetection) ErrorDetection {
	d := ErrorDetection{
		Detect: p.boolean(keyDetect, standard.Detect, previous.Detect),
		Lines: p.integer(keyDetectLines, limits{minimum: -1, maximum: maxDetectionLines},
			standard.Lines, previous.Lines),
		Pattern: p.pattern(keyDetectPattern, standard.Pattern, previous.Pattern),
	}
	if d.Lines < 0 {
		d.Lines = maxDetectionLines
	}
	return d
}

// pattern reads a regular expression that has the groups of an error.
func (p *parser) pattern(key string, standard, previous *regexp.Regexp) *regexp.Regexp {
	v, ok := p.value(key)
	if !ok {
		return standard
	}
	compiled, err := regexp.Compile(v)
	problem := ""
	switch {
	case len(v) > maxPattern:
		problem = fmt.Sprintf("it has %d bytes", len(v))
	case err != nil:
		problem = "it does not compile"
	default:
		for _, group := range []string{GroupFilename, GroupLine, GroupError} {
			if !slices.Contains(compiled.SubexpNames(), group) {
				problem = "it has no group " + group
			}
		}
	}
	if problem != "" {
		p.bad(key, problem, fmt.Sprintf(
			"a regular expression (RE2) of at most %d bytes with the groups (?P<%s>…), (?P<%s>…) and (?P<%s>…)",
			maxPattern, GroupFilename, GroupLine, GroupError))
		return previous
	}
	return compiled
}
