// SPDX-License-Identifier: Apache-2.0

// Package template evaluates the placeholders of authors: {{ cel: … }}, {{ revision }},
// {{ body.number }} and the custom params of a Repository. It is pure: callers pass the facts. If a
// value depends on a fact that is not known yet, the error requests that fact. A marker takes
// the place of each secret's value, so that a stored plan contains no secrets.
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
	// Name is the name in placeholders and expressions. Several entries may have one name.
	Name string
	// Value takes precedence over Secret. An entry with neither is the empty text.
	Value string
	// Filter is a CEL expression. The entry counts only for events for which it is true. An empty
	// filter is always true.
	Filter string
	// Secret holds the value if Value is empty.
	Secret *SecretRef
	// Field is the place of the entry, for messages: "spec.params[2]".
	Field string
}

// Facts are what placeholders and expressions read.
type Facts struct {
	// Key is the event's name. It makes the markers of one event differ from those of others.
	Key string
	// Variables are the standard ones, as resolve.Variables returns them.
	Variables map[string]string
	// MergedPull is the number of the merged pull request with the commit of a push. It is 0 when
	// there is none, and nil when that is not known. It counts only if Variables have no
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
	// Budget limits the cost of the event's expressions; nil is a new cel.EventSteps.
	Budget *cel.Budget
}

// Needs are the unknown facts that a value depends on.
type Needs struct {
	// Changed, Body and Pulls request Files, Body and MergedPull.
	Changed, Body, Pulls bool
	// Secrets requests these values, each once.
	Secrets []SecretRef
}

// Any reports whether anything is needed.
func (n Needs) Any() bool {
	return n.Changed || n.Body || n.Pulls || len(n.Secrets) > 0
}

// Add adds other needs.
func (n *Needs) Add(more Needs) {
	n.Changed, n.Body, n.Pulls = n.Changed || more.Changed, n.Body || more.Body, n.Pulls || more.Pulls
	for _, ref := range more.Secrets {
		if !slices.Contains(n.Secrets, ref) {
			n.Secrets = append(n.Secrets, ref)
		}
	}
}

// Unknown is the error for a value that depends on unknown facts. When they are known, the caller
// can try again.
type Unknown struct{ Needs Needs }

// Error implements error.
func (*Unknown) Error() string {
	return "the payload, the changed files, the pull requests or a secret must be read first"
}

// NeedsOf returns the needs of an Unknown error, and none of any other error.
func NeedsOf(err error) (Needs, bool) {
	var unknown *Unknown
	if !errors.As(err, &unknown) {
		return Needs{}, false
	}
	return unknown.Needs, true
}

// Scope evaluates placeholders for one event, or for one run of it. It remembers the expressions
// that it has compiled and the secrets that it has placed. It is not safe for concurrent use.
type Scope struct {
	// own are the variables of one run.
	own map[string]string
	*shared
}

// shared is the part that all runs of an event share.
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

// With returns the scope with one more standard variable, git_auth_secret, for one run. Facts that
// one of the two scopes learns are known to both.
func (s *Scope) With(name, value string) *Scope {
	own := maps.Clone(s.own)
	if own == nil {
		own = map[string]string{}
	}
	own[name] = value
	return &Scope{own: own, shared: s.shared}
}

// Learn adds the Body, Files, MergedPull and Secrets that are set. Other facts do not change.
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

// UsedFiles reports whether an expression has read the changed files since the last call of
// UsedFiles.
func (s *Scope) UsedFiles() bool {
	used := s.usedFiles
	s.usedFiles = false
	return used
}

// Conceal removes the values of secrets from a fault's message. The result does not wrap the
// original error. Any other error stays as it is.
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

// mask removes the values of all known secrets, whether they were placed or not.
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
