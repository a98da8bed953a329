// SPDX-License-Identifier: Apache-2.0

package template

import (
	"maps"
	"strconv"

	"github.com/plumbline-ci/plumbline/pkg/pipeline/cel"
)

// binding has the variables that one expression reads.
type binding struct {
	values cel.Values
	// pac are the members of the variable pac.
	pac map[string]any
	// pending is what must be learnt before the variables without a value have one.
	pending map[string]Needs
	// secret is true when the expression reads a secret.
	secret bool
}

// wait records that a variable must be learnt. pac must be learnt, too, because the variable is a
// part of it.
func (b *binding) wait(name string, needs Needs) {
	for _, name := range []string{name, cel.PAC} {
		all := b.pending[name]
		all.Add(needs)
		b.pending[name] = all
	}
	delete(b.values, name)
}

// set gives a variable its value.
func (b *binding) set(name, text string) {
	b.values[name], b.pac[name] = text, text
}

// payload binds body and files, which may not be known yet.
func (b *binding) payload(facts *Facts) {
	b.pending[cel.Body], b.pending[cel.Files] = Needs{Body: true}, Needs{Changed: true}
	if facts.Body != nil {
		b.values[cel.Body] = facts.Body
	}
	if facts.Files != nil {
		b.values[cel.Files] = facts.Files
	}
}

// evaluate evaluates a program. The error is *Unknown if the outcome depends on an unknown value,
// or Invalid.
func (b *binding) evaluate(p *cel.Program) (cel.Outcome, error) {
	if _, waits := b.pending[cel.PAC]; !waits {
		b.values[cel.PAC] = b.pac
	}
	outcome, err := p.Evaluate(b.values)
	if err != nil || len(outcome.Missing) == 0 {
		return outcome, err
	}
	return outcome, missing(p, outcome.Missing, b.pending)
}

// missing returns the error for an expression that depends on variables without a value. If a
// variable does not exist for the event, that is reported only when everything else is known.
func missing(p *cel.Program, names []string, pending map[string]Needs) error {
	var needs Needs
	for _, name := range names {
		needs.Add(pending[name])
	}
	if needs.Any() {
		return &Unknown{needs}
	}
	return p.Undeclared(names[0])
}

// bind gives a template's expression its variables. It looks up only the params that the expression
// mentions.
func (s *Scope) bind(p *cel.Program) (*binding, error) {
	b := &binding{values: cel.Values{cel.Headers: s.headers}, pac: map[string]any{}, pending: map[string]Needs{}}
	b.payload(&s.facts)
	s.usedFiles = s.usedFiles || p.Mentions(cel.Files)
	s.bindStandard(p, b)
	return b, s.bindParams(p, b)
}

func (s *Scope) bindStandard(p *cel.Program, b *binding) {
	for _, name := range s.standardNames() {
		b.values[name] = "" // declared and empty
	}
	for name := range s.facts.Variables {
		text, _ := s.standard(name)
		b.set(name, text)
	}
	for name, text := range s.own {
		b.set(name, text)
	}
	if _, found := s.standard(pullNumber); found || !p.Mentions(pullNumber) {
		return
	}
	v, err := s.mergedPull()
	if needs, unknown := NeedsOf(err); unknown {
		b.wait(pullNumber, needs)
	} else if v.found {
		b.set(pullNumber, v.text)
	}
}

// mergedPull is pull_request_number of a push.
func (s *Scope) mergedPull() (variable, error) {
	number := s.facts.MergedPull
	if number == nil {
		return variable{}, &Unknown{Needs{Pulls: true}}
	}
	return variable{text: strconv.FormatInt(*number, 10), found: *number != 0}, nil
}

func (s *Scope) bindParams(p *cel.Program, b *binding) error {
	for _, name := range s.names {
		if !p.Mentions(name) {
			continue
		}
		v, err := s.param(name)
		if needs, unknown := NeedsOf(err); unknown {
			b.wait(name, needs)
			continue
		}
		if err != nil {
			return err
		}
		if v.found {
			b.set(name, v.text)
			b.secret = b.secret || v.secret
		}
	}
	return nil
}

// Params are the custom params that the expressions of annotations read. The zero value has none.
type Params struct{ scope *Scope }

// Params returns the custom params of the event.
func (s *Scope) Params() Params { return Params{s} }

// Compile compiles the expression of an annotation. The error is a fault.Invalid that begins with
// line and column.
func (p Params) Compile(text string) (*cel.Program, error) {
	s := p.scope
	if s == nil {
		s = &Scope{shared: &shared{annotations: map[string]compiled{}}}
	}
	if known, found := s.annotations[text]; found {
		return known.program, known.err
	}
	if s.matching == nil {
		environment, err := cel.ForMatching(s.names)
		if err != nil {
			return nil, err
		}
		s.matching = environment.Within(s.facts.Budget)
	}
	program, err := s.matching.Compile(text)
	s.annotations[text] = compiled{program, err}
	return program, err
}

// Values returns the params that an expression mentions and that are known. If the expression
// depends on others, Missing reports them.
func (p Params) Values(program *cel.Program) (Values, error) {
	b := binding{values: cel.Values{}, pac: map[string]any{}, pending: map[string]Needs{}}
	if p.scope == nil {
		return Values{program, b}, nil
	}
	err := p.scope.bindParams(program, &b)
	return Values{program, b}, err
}

// Values are the params that an expression of an annotation reads.
type Values struct {
	program *cel.Program
	binding binding
}

// Put adds the values to others.
func (v Values) Put(into cel.Values) { maps.Copy(into, v.binding.values) }

// Missing returns the error for an outcome that depends on variables without a value. It is
// *Unknown, or a fault.Invalid at the place of a variable that does not exist for this event.
func (v Values) Missing(names []string) error {
	v.binding.pending[cel.Body], v.binding.pending[cel.Files] = Needs{Body: true}, Needs{Changed: true}
	return missing(v.program, names, v.binding.pending)
}

// Spend subtracts steps from the event's budget. When the budget is exhausted, the error is a
// fault.Invalid.
func (p Params) Spend(steps int) error {
	if p.scope == nil {
		return nil
	}
	return p.scope.facts.Budget.Spend(steps)
}

// Mask removes the values of secrets from a text for people.
func (p Params) Mask(text string) string {
	if p.scope == nil {
		return text
	}
	return p.scope.mask(text)
}

// Conceal removes the values of secrets from an error.
func (p Params) Conceal(err error) error {
	if p.scope == nil {
		return err
	}
	return p.scope.Conceal(err)
}
