// SPDX-License-Identifier: Apache-2.0

package template

import (
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/cel"
)

// pullNumber is the only standard variable that exists for some pushes and not for others.
const pullNumber = "pull_request_number"

// entry is a Param with its filter.
type entry struct {
	Param
	filter *cel.Program
	// applies is the value of the filter, once that is known.
	applies *bool
}

// declare reads the params. It skips those without a name and those named like a part of the
// payload, because no placeholder can refer to them.
func (s *Scope) declare() error {
	var filters *cel.Environment
	for _, p := range s.facts.Params {
		if p.Name == "" || slices.Contains(parts(), p.Name) {
			continue
		}
		if p.Value == "" && p.Secret != nil && (p.Secret.Name == "" || p.Secret.Key == "") {
			return fault.Operatorf(reasonBadParam, "%s (%s): secret_ref needs a name and a key", p.Field, p.Name)
		}
		e := &entry{Param: p}
		if p.Filter != "" {
			var err error
			if filters == nil {
				filters, err = cel.ForTemplates(s.standardNames())
			}
			if err != nil {
				return err
			}
			if e.filter, err = filters.Within(s.facts.Budget).Compile(p.Filter); err != nil {
				return fault.Operatorf(reasonBadParam, "%s (%s): the filter is not a valid expression: %w", p.Field, p.Name, err)
			}
		}
		s.params[p.Name] = append(s.params[p.Name], e)
	}
	return nil
}

// standardNames are the variables that every expression of a template may read.
func (s *Scope) standardNames() []string {
	names := always()
	for name := range s.facts.Variables {
		names = append(names, name)
	}
	return names
}

// variable is the value of a name.
type variable struct {
	text string
	// found is false when there is no such variable for this event. secret is true when the text is
	// a secret.
	found, secret bool
}

// variable looks up a name. A param hides a standard variable of the same name.
func (s *Scope) variable(name string) (variable, error) {
	v, err := s.param(name)
	if err != nil || v.found {
		return v, err
	}
	if text, found := s.standard(name); found {
		return variable{text: text, found: true}, nil
	}
	if name != pullNumber {
		return variable{}, nil
	}
	return s.mergedPull()
}

// param looks up a custom param. An entry without a filter replaces the entries before it. Of the
// entries with a filter, the first that applies counts.
func (s *Scope) param(name string) (variable, error) {
	entries := s.params[name]
	if n := len(entries); n > 0 && entries[n-1].filter == nil {
		return s.value(entries[n-1])
	}
	var chosen *entry
	matched := false
	for _, e := range entries {
		if e.filter == nil {
			chosen = e
			continue
		}
		if matched {
			continue
		}
		applies, err := s.applies(e)
		if err != nil {
			return variable{}, err
		}
		if applies {
			chosen, matched = e, true
		}
	}
	if chosen == nil {
		return variable{}, nil
	}
	return s.value(chosen)
}

func (s *Scope) value(e *entry) (variable, error) {
	if e.Value != "" || e.Secret == nil {
		return variable{text: strings.ToValidUTF8(e.Value, "\ufffd"), found: true}, nil
	}
	value, known := s.facts.Secrets[*e.Secret]
	if !known {
		return variable{}, &Unknown{Needs{Secrets: []SecretRef{*e.Secret}}}
	}
	return variable{text: strings.ToValidUTF8(value, "\ufffd"), found: true, secret: true}, nil
}

// maxPublic is the largest value that Public returns, in bytes. A link of 2,048 bytes, which GitHub
// shows, has room for several.
const maxPublic = 256

// Public returns the values of variables for links. It leaves out those that do not exist or are
// long, and those of Secrets, which it does not request. With an error it returns what is known.
func (s *Scope) Public(names []string) (values map[string]string, err error) {
	for _, name := range names {
		v, problem := s.variable(name)
		needs, _ := NeedsOf(problem)
		switch {
		case len(needs.Secrets) > 0 || v.secret:
		case problem != nil:
			err = problem
		case v.found && len(v.text) <= maxPublic:
			if values == nil {
				values = map[string]string{}
			}
			values[name] = v.text
		}
	}
	return values, err
}

// applies evaluates a filter. A filter that fails, because this payload does not have a field, does
// not apply.
func (s *Scope) applies(e *entry) (bool, error) {
	s.usedFiles = s.usedFiles || e.filter.Mentions(cel.Files)
	if e.applies != nil {
		return *e.applies, nil
	}
	b := binding{values: cel.Values{cel.Headers: map[string]any{}}, pac: map[string]any{}, pending: map[string]Needs{}}
	b.payload(&s.facts)
	s.bindStandard(e.filter, &b)
	outcome, err := b.evaluate(e.filter)
	if _, unknown := NeedsOf(err); unknown || overspent(err) {
		return false, err
	}
	applies := false
	if err == nil {
		applies, err = outcome.Bool()
	}
	applies = applies && err == nil
	e.applies = &applies
	return applies, nil
}

// overspent reports whether an expression was not evaluated because the event's budget is
// exhausted.
func overspent(err error) bool {
	return fault.Is(err, fault.Invalid) && fault.Of(err).Reason == cel.ReasonSteps
}

// Reserved reports whether a name belongs to something that every event has, so that a comment may
// not give it another value. That is a standard variable, of which the caller knows
// resolve.Variables, or a part of the payload.
func Reserved(name string, variables map[string]string) bool {
	_, standard := variables[name]
	return standard || slices.Contains(always(), name) || slices.Contains(parts(), name)
}

// always are the standard variables that resolve.Variables do not have for every event.
func always() []string {
	return []string{pullNumber, "git_auth_secret", cel.TargetURL, cel.EventTitle}
}

// parts are the names of the payload and the delivery in expressions.
func parts() []string {
	return []string{cel.Body, cel.Headers, cel.Files, cel.PAC}
}
