// SPDX-License-Identifier: Apache-2.0

// Package template says what the placeholders of authors stand for: {{ revision }}, {{ body.number
// }}, {{ cel: … }} and the custom params of a Repository. It is pure: facts are given to it, those
// that are not known yet are asked for, and only if something depends on them. Values of secrets
// are placed as markers, so that what is stored of a plan holds none.
package template

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/cel"
)

// SecretRef is a key of a Secret in the Repository's namespace.
type SecretRef struct{ Name, Key string }

// Param is one entry of a Repository's spec.params.
type Param struct {
	// Name is what placeholders and expressions call it. Several entries may have one name.
	Name string
	// Value goes before Secret. An entry with neither is the empty text.
	Value string
	// Filter is a CEL expression; the entry counts only for events for which it is true. Empty is
	// always.
	Filter string
	// Secret holds the value if Value is empty.
	Secret *SecretRef
	// Field is where the entry is written, for messages: "spec.params[2]".
	Field string
}

// Facts are what placeholders and expressions read.
type Facts struct {
	// Key makes the markers of one event differ from those of others: the event's name.
	Key string
	// Variables are the standard ones, as resolve.Variables returns them.
	Variables map[string]string
	// MergedPull is the number of the merged pull request that holds the commit of a push, 0 when
	// there is none, nil when that is not known. It counts only if Variables have no
	// pull_request_number.
	MergedPull *int64
	// Headers are the delivery's, names in any case.
	Headers map[string]string
	// Body is the payload as the service sent it, decoded; nil when it is not known.
	Body map[string]any
	// Files are the cel.ChangedFiles; nil when they are not known.
	Files map[string]any
	// Params are the Repository's, in its order.
	Params []Param
	// Secrets are the values that are known.
	Secrets map[SecretRef]string
	// Budget is what the event's expressions may cost; nil is a new cel.EventSteps.
	Budget *cel.Budget
}

// Needs are the facts that are not known and matter.
type Needs struct {
	// Changed, Body and Pulls ask for Files, Body and MergedPull.
	Changed, Body, Pulls bool
	// Secrets asks for these values, each once.
	Secrets []SecretRef
}

// Any reports whether anything is needed.
func (n Needs) Any() bool {
	return n.Changed || n.Body || n.Pulls || len(n.Secrets) > 0
}

// Add adds what is needed by something else.
func (n *Needs) Add(more Needs) {
	n.Changed, n.Body, n.Pulls = n.Changed || more.Changed, n.Body || more.Body, n.Pulls || more.Pulls
	for _, ref := range more.Secrets {
		if !slices.Contains(n.Secrets, ref) {
			n.Secrets = append(n.Secrets, ref)
		}
	}
}

// Unknown is the error of whatever depends on facts that are not known. Once they are, it can be
// asked again.
type Unknown struct{ Needs Needs }

// Error implements error.
func (*Unknown) Error() string {
	return "the payload, the changed files, the pull requests or a secret must be read first"
}

// NeedsOf returns what an error asks for, if it is an Unknown.
func NeedsOf(err error) (Needs, bool) {
	var unknown *Unknown
	if !errors.As(err, &unknown) {
		return Needs{}, false
	}
	return unknown.Needs, true
}

// Scope is what placeholders stand for in one event, or in one run of it. It remembers what it has
// compiled and which secrets it has placed, and is not safe for use by several goroutines.
type Scope struct {
	// own are the variables of one run.
	own map[string]string
	*shared
}

// shared is the part that all runs of an event have in common.
type shared struct {
	facts   Facts
	headers any
	// params are the entries of each name, in the Repository's order; names are sorted.
	params map[string][]*entry
	names  []string
	// templates and matching are made on first use.
	templates, matching *cel.Environment
	programs            map[string]compiled
	// annotations are the programs of annotations, which see other variables.
	annotations map[string]compiled
	// placed are the secret values by their markers, and size the bytes of all of them.
	placed map[string]string
	size   int
	// usedFiles is set by expressions that read the changed files.
	usedFiles bool
}

type compiled struct {
	program *cel.Program
	err     error
}

// New returns the scope of an event. The error is a fault.Operator: the owner of the Repository
// must fix a param.
func New(facts Facts) (*Scope, error) {
	if facts.Budget == nil {
		facts.Budget = cel.NewBudget(cel.EventSteps)
	}
	s := &Scope{shared: &shared{
		facts: facts, headers: cel.AnyCase(facts.Headers), params: map[string][]*entry{},
		programs: map[string]compiled{}, annotations: map[string]compiled{}, placed: map[string]string{},
	}}
	s.facts.Secrets = maps.Clone(facts.Secrets)
	if err := s.declare(); err != nil {
		return nil, err
	}
	s.names = slices.Sorted(maps.Keys(s.params))
	return s, nil
}

// With returns the scope with one more standard variable, for one run: git_auth_secret. Both learn
// from the same facts.
func (s *Scope) With(name, value string) *Scope {
	own := maps.Clone(s.own)
	if own == nil {
		own = map[string]string{}
	}
	own[name] = value
	return &Scope{own: own, shared: s.shared}
}

// Learn adds the Body, Files, MergedPull and Secrets that are set; other facts do not change.
func (s *Scope) Learn(more Facts) {
	if more.Body != nil {
		s.facts.Body = more.Body
	}
	if more.Files != nil {
		s.facts.Files = more.Files
	}
	if more.MergedPull != nil {
		s.facts.MergedPull = more.MergedPull
	}
	if s.facts.Secrets == nil {
		s.facts.Secrets = map[SecretRef]string{}
	}
	maps.Copy(s.facts.Secrets, more.Secrets)
}

// UsedFiles reports whether anything has read the changed files since it was asked last.
func (s *Scope) UsedFiles() bool {
	used := s.usedFiles
	s.usedFiles = false
	return used
}

// Conceal takes the values of secrets out of a fault's message. What it wrapped is lost. Any other
// error stays as it is.
func (s *Scope) Conceal(err error) error {
	if _, unknown := NeedsOf(err); err == nil || unknown {
		return err
	}
	f := fault.Of(err)
	masked := s.mask(f.Message)
	if masked == f.Message {
		return err
	}
	return f.Reworded(masked)
}

// mask takes out the values of all secrets that are known, whether they were placed or not.
func (s *Scope) mask(text string) string {
	values := slices.Collect(maps.Values(s.facts.Secrets))
	if len(values) == 0 && len(s.placed) == 0 {
		return text
	}
	return mask(text, slices.Collect(maps.Keys(s.placed)), append(values, slices.Collect(maps.Values(s.placed))...))
}

// standard returns a standard variable.
func (s *Scope) standard(name string) (string, bool) {
	if value, found := s.own[name]; found {
		return value, true
	}
	value, found := s.facts.Variables[name]
	return strings.ToValidUTF8(value, "\ufffd"), found
}
