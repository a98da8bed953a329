// SPDX-License-Identifier: Apache-2.0

package template

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/cel"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// placeholder is a template variable.
var placeholder = regexp.MustCompile(`{{([^}]{2,})}}`)

const (
	// celPrefix starts a placeholder that is an expression and nothing else.
	celPrefix = "cel:"
	// maxText limits a text outside of a manifest, in bytes: an annotation or a reference.
	// Kubernetes stores at most 256 KiB of annotations.
	maxText = 1 << 20
	// maxShown is how many bytes of a placeholder a message shows.
	maxShown = 128
)

// ErrTooLong is returned when the values of placeholders have more bytes than were left.
var ErrTooLong = errors.New("the values of the placeholders are too long")

// Whole reports whether a text is one placeholder and nothing else.
func Whole(text string) bool {
	return placeholder.FindString(text) == text && text != ""
}

// IsExpression reports whether a placeholder, without its braces, is evaluated as CEL.
func IsExpression(name string) bool {
	name = strings.TrimSpace(name)
	return strings.HasPrefix(name, celPrefix) || lenient(name)
}

// lenient reports whether an expression that fails leaves its placeholder as it is.
func lenient(name string) bool {
	return strings.HasPrefix(name, cel.Body) || strings.HasPrefix(name, cel.Headers) || strings.HasPrefix(name, cel.Files)
}

// Replace calls replace with each placeholder of a text, with its braces, and puts the result in
// its place.
func Replace(text string, replace func(string) string) string {
	return placeholder.ReplaceAllStringFunc(text, replace)
}

// Text replaces the placeholders of a text by their values, secrets too. It is for texts that are
// not stored: references, and annotations that decide. A placeholder that does not exist stays as
// it is. The error is *Unknown or Invalid.
func (s *Scope) Text(text string) (string, error) {
	left := maxText
	replaced, err := s.expand(text, &left, false)
	if errors.Is(err, ErrTooLong) {
		return "", fault.Invalidf(reasonTooLarge, "with its placeholders replaced the text has more than %d bytes", maxText)
	}
	return replaced, err
}

// Written converts an offset in Text(text) to the offset in text, both in bytes. For an offset
// inside the value of a placeholder, it returns the offset of the placeholder.
func (s *Scope) Written(text string, offset int) int {
	read, placed := 0, 0 // the bytes of text, and of Text(text), that are behind
	for _, at := range placeholder.FindAllStringIndex(text, -1) {
		start := placed + at[0] - read
		if offset < start {
			break
		}
		value, err := s.Text(text[at[0]:at[1]])
		if err != nil || value == text[at[0]:at[1]] {
			continue
		}
		if offset < start+len(value) {
			return at[0]
		}
		read, placed = at[1], start+len(value)
	}
	return min(read+offset-placed, len(text))
}

// Place replaces the placeholders of a text of a manifest; secrets become markers. It subtracts the
// bytes of the values from left. The error is *Unknown, Invalid, or ErrTooLong when nothing is
// left.
func (s *Scope) Place(text string, left *int) (string, error) {
	return s.expand(text, left, true)
}

// Known replaces the placeholders of a text for people whose values are known. Unknown
// placeholders, placeholders that do not exist, and secrets stay as they are written.
func (s *Scope) Known(text string) string {
	return Replace(text, func(original string) string {
		r, err := s.read(original[2 : len(original)-2])
		if err != nil || !r.found || r.secret {
			return original
		}
		return asText(r.value)
	})
}

// expand replaces placeholders from left to right. Values are placed once and never read again.
func (s *Scope) expand(text string, left *int, conceal bool) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	joined := joiner{apart: conceal}
	var needs Needs
	done := 0
	for _, at := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		r, err := s.read(text[at[2]:at[3]])
		if more, unknown := NeedsOf(err); unknown {
			needs.Add(more)
			continue
		}
		if err != nil {
			return "", err
		}
		if !r.found {
			continue
		}
		value := asText(r.value)
		if err := s.spend(apart(value), left); err != nil {
			return "", err
		}
		if value, err = s.piece(r, value, conceal); err != nil {
			return "", err
		}
		joined.add(text[done:at[0]])
		joined.add(value)
		done = at[1]
	}
	if needs.Any() {
		return "", &Unknown{needs}
	}
	joined.add(text[done:])
	return joined.b.String(), s.fits()
}

// piece is the text that replaces a placeholder.
func (s *Scope) piece(r result, value string, conceal bool) (string, error) {
	isSecret := r.secret && hasText(r.value)
	marker := ""
	if isSecret {
		marker = s.conceal(r, value, "")
	}
	switch {
	case !conceal:
		return value, nil
	case !isSecret:
		return apart(value), nil
	}
	return marker, placeable(r.name, value)
}

// PlaceNode is Place for a text that is a whole plain scalar of YAML. If the text is one
// placeholder, its value becomes the node: a string, bool, float64, nil, []any or map[string]any.
func (s *Scope) PlaceNode(text string, left *int) (any, error) {
	if !Whole(text) {
		return s.Place(text, left)
	}
	r, err := s.read(text[2 : len(text)-2])
	if err != nil || !r.found {
		return text, err
	}
	if err := s.spend(apart(asText(r.value)), left); err != nil {
		return nil, err
	}
	if r.secret {
		return s.concealAll(r, r.value, ""), cmp.Or(placeable(r.name, asText(r.value)), s.fits())
	}
	return allApart(r.value), nil
}

// spend counts the bytes of a value.
func (s *Scope) spend(value string, left *int) error {
	if *left -= len(value); *left < 0 {
		return ErrTooLong
	}
	return nil
}

// result is the value of a placeholder.
type result struct {
	// name is the placeholder without braces and spaces.
	name string
	// value is what encoding/json would decode it to.
	value any
	// found is false when the placeholder stays as it is. secret is true when the value contains a
	// secret. own is true when the value may differ between runs.
	found, secret, own bool
}

// read evaluates a placeholder without its braces.
func (s *Scope) read(name string) (result, error) {
	name = strings.TrimSpace(name)
	v, err := s.variable(name)
	if err != nil || v.found {
		return result{name: name, value: v.text, found: v.found, secret: v.secret}, err
	}
	text, strict := strings.CutPrefix(name, celPrefix)
	if !strict && !lenient(name) {
		return result{name: name}, nil
	}
	program, err := s.compile(text)
	if err != nil {
		return result{name: name}, refuse(name, strict, err)
	}
	value, secret, err := s.evaluate(program)
	if fault.Is(err, fault.Invalid) && fault.Of(err).Reason == reasonFailed {
		return result{name: name, value: "", found: strict}, nil
	}
	return result{name: name, value: value, found: err == nil, secret: secret, own: true}, refuse(name, strict, err)
}

// reasonFailed is the reason for a correct expression that has no value for this event.
const reasonFailed = "NoValue"

// refuse names the placeholder of an error; a lenient one has none, unless nothing was learnt.
func refuse(name string, strict bool, err error) error {
	if _, unknown := NeedsOf(err); err == nil || unknown || !fault.Is(err, fault.Invalid) {
		return err
	}
	if strict || overspent(err) {
		return fmt.Errorf("{{ %s }}: %w", shorten(name), err)
	}
	return nil
}

func (s *Scope) compile(text string) (*cel.Program, error) {
	if known, found := s.programs[text]; found {
		return known.program, known.err
	}
	if s.templates == nil {
		environment, err := cel.ForTemplates(append(s.standardNames(), s.names...))
		if err != nil {
			return nil, err
		}
		s.templates = environment.Within(s.facts.Budget)
	}
	program, err := s.templates.Compile(strings.TrimSpace(text))
	s.programs[text] = compiled{program, err}
	return program, err
}

// evaluate returns the value of an expression. If it has none for this event, the error has
// reasonFailed.
func (s *Scope) evaluate(program *cel.Program) (value any, secret bool, err error) {
	b, err := s.bind(program)
	if err != nil {
		return nil, false, err
	}
	outcome, err := b.evaluate(program)
	if _, unknown := NeedsOf(err); unknown || overspent(err) {
		return nil, false, err
	}
	if len(outcome.Missing) > 0 {
		return nil, false, err // a param that does not apply
	}
	if err == nil {
		value, err = outcome.Value()
	}
	if err != nil {
		return nil, false, fault.Invalidf(reasonFailed, "%w", err)
	}
	value = valid(value)
	return value, b.secret, s.facts.Budget.Spend(1 + len(asText(value))/10)
}

// shorten cuts a placeholder to maxShown bytes.
func shorten(s string) string { return text.Shorten(s, maxShown, text.Bytes) }
