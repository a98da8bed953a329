// SPDX-License-Identifier: Apache-2.0

package command

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

const (
	// maxValue is the bytes of an argument's value.
	maxValue = 1 << 10
	// maxShown is the characters of a word that a message shows.
	maxShown = 64
)

// words are what stands behind a command.
type words struct {
	names       []string
	args        map[string]string
	branch, tag string
}

// words reads them. The error is Invalid.
func (r *reader) words(text string) (words, error) {
	var read words
	for text = trim(text); text != ""; text = trim(text) {
		var err error
		if beginsArgument(text) {
			text, err = read.argument(text)
		} else {
			text, err = read.word(text, r.onCommit)
		}
		if err != nil {
			return words{}, err
		}
	}
	return read, nil
}

// argumentPattern matches the start of an argument. Pipelines-as-Code allows no dash in its name.
var argumentPattern = regexp.MustCompile(`^\w[\w-]*=`)

func beginsArgument(text string) bool { return argumentPattern.MatchString(text) }

// argument reads one argument and returns the text behind it.
func (w *words) argument(text string) (behind string, err error) {
	key, text, _ := strings.Cut(text, "=")
	value, behind, err := cutValue(key, text)
	if err != nil {
		return "", err
	}
	switch known, found := w.args[key]; {
	case len(value) > maxValue:
		return "", malformedf("the value of %s has %d bytes, at most %d are read", short(key), len(value), maxValue)
	case strings.ContainsFunc(value, unicode.IsControl):
		return "", malformedf("the value of %s has control characters", short(key))
	case found && known != value:
		return "", malformedf("the argument %s has two values", short(key))
	}
	if w.args == nil {
		w.args = map[string]string{}
	}
	w.args[key] = value
	return behind, nil
}

// cutValue returns the value that text begins with, and what is behind it. A value stands in double
// quotes, in which \" is a quote, or has neither blanks nor quotes.
func cutValue(key, text string) (value, behind string, err error) {
	value, behind = cutWord(text)
	switch {
	case strings.HasPrefix(text, `"`):
		end := closing(text)
		if end < 0 {
			return "", "", malformedf("the quotes around the value of %s are not closed", short(key))
		}
		value, behind = strings.ReplaceAll(text[1:end], `\"`, `"`), text[end+1:]
		if behind != "" && strings.TrimLeftFunc(behind, isSpace) == behind {
			return "", "", malformedf("there has to be a space behind the value of %s", short(key))
		}
	case value == "":
		return "", "", malformedf(`the argument %s has no value: an empty one is written ""`, short(key))
	case strings.ContainsAny(value, `"'`):
		return "", "", malformedf(`the value of %s has quotes in it: put all of it in double quotes, with \" for a quote`,
			short(key))
	}
	return value, behind, nil
}

// closing returns where the quote is that closes the one that text begins with, -1 if there is
// none.
func closing(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// word reads a word that is no argument and returns the text behind it: a pipeline's name or, on a
// commit, a branch or a tag.
func (w *words) word(text string, onCommit bool) (behind string, err error) {
	word, behind := cutWord(text)
	switch {
	case strings.Contains(word, "="):
		return "", malformedf("%s is no argument: the name in front of = has letters, digits, _ and - only", short(word))
	case onCommit && strings.Contains(word, ":"):
		return w.ref(word, behind)
	}
	w.names = append(w.names, word)
	return behind, nil
}

// ref reads branch:NAME or tag:NAME. There may be blanks in front of the name.
func (w *words) ref(word, behind string) (rest string, err error) {
	kind, name, _ := strings.Cut(word, ":")
	if name == "" {
		name, behind = cutWord(behind)
	}
	into := map[string]*string{"branch": &w.branch, "tag": &w.tag}[kind]
	switch {
	case into == nil:
		return "", malformedf("%s is neither a pipeline's name nor branch:NAME nor tag:NAME", short(word))
	case name == "":
		return "", malformedf("there is no name behind %s:", kind)
	case !git.IsRefName(name):
		return "", malformedf("%s is no name of a branch or tag", short(name))
	case *into != "" && *into != name:
		return "", malformedf("the command names two of %s:", kind)
	}
	*into = name
	return behind, nil
}

// cutWord returns the word that text begins with, and what is behind it.
func cutWord(text string) (word, behind string) {
	end := strings.IndexFunc(text, isSpace)
	if end < 0 {
		return text, ""
	}
	return text[:end], strings.TrimLeftFunc(text[end:], isSpace)
}

func trim(text string) string { return strings.TrimFunc(text, isSpace) }

// isSpace reports whether a character separates words. Commands that are pasted from a page or a
// chat can hold no-break spaces and invisible characters.
func isSpace(c rune) bool {
	const zeroWidthSpace, wordJoiner, byteOrderMark = '\u200b', '\u2060', '\ufeff'
	return unicode.IsSpace(c) || c == zeroWidthSpace || c == wordJoiner || c == byteOrderMark
}

func isSpaceOrControl(c rune) bool { return isSpace(c) || unicode.IsControl(c) }

func malformedf(format string, args ...any) error {
	return fault.Invalidf(ReasonMalformed, "nothing was done: "+format, args...)
}

// short is what a message shows of a word.
func short(word string) string {
	if runes := []rune(word); len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return word
}
