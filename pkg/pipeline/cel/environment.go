// SPDX-License-Identifier: Apache-2.0

// Package cel evaluates the CEL expressions of authors. Only this package declares their variables,
// functions and limits. It is pure: callers pass the values that an expression reads. If a value is
// not known yet, the outcome names it.
package cel

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Variables that both kinds of environments have.
const (
	// Body is the payload as the service sent it.
	Body = "body"
	// Headers are the delivery's headers.
	Headers = "headers"
	// Files are the changed files: lists under the keys all, added, deleted, modified and renamed.
	Files = "files"
)

// Variables of on-cel-expression, all strings.
const (
	Event        = "event"
	EventType    = "event_type"
	EventTitle   = "event_title"
	TargetBranch = "target_branch"
	SourceBranch = "source_branch"
	TargetURL    = "target_url"
	SourceURL    = "source_url"
)

// PAC is the map of the standard variables that templates and filters read.
const PAC = "pac"

const (
	// maxSource limits an expression in code points. Expressions that people can read are ten times
	// shorter.
	maxSource = 16 << 10
	// maxDepth limits how deep the parser descends.
	maxDepth = 100
	// maxRepairs limits how often the parser continues after an error. Only the first error is
	// reported.
	maxRepairs = 4
)

// Environment is a set of variables and functions that expressions are compiled against. It is
// immutable and may be shared. To create one takes about as long as to compile an expression.
type Environment struct {
	env *cel.Env
	// names are the declared variables, sorted.
	names []string
	// private are the variables whose values no message may show, because they may be secret.
	private []string
	// budget pays for compiling and evaluating; nil has no limit.
	budget *Budget
}

// Within returns the environment with a budget. The budget pays for each expression when it is
// compiled in the environment, and when it is evaluated.
func (e *Environment) Within(budget *Budget) *Environment {
	limited := *e
	limited.budget = budget
	return &limited
}

// ForMatching returns the environment of on-cel-expression. It has PaC's variables,
// "glob".pathChanged(), CEL's standard functions and macros, and a string for each custom param. It
// has no param with the name of a variable, as in PaC, and none whose name is not valid in an
// expression.
func ForMatching(params []string) (*Environment, error) {
	return newEnvironment([]string{Event, EventType, EventTitle, TargetBranch, SourceBranch, TargetURL, SourceURL}, params)
}

// ForTemplates returns the environment of three kinds of expressions: cel: placeholders,
// placeholders of body, headers and files, and the filters of params. It has body, headers, files,
// pac, a string for each of the variables, and CEL's extensions for strings and lists.
func ForTemplates(variables []string) (*Environment, error) {
	return newEnvironment(nil, variables, ext.Strings(), ext.Lists(ext.ListsMaxRangeSize(maxRange)))
}

func newEnvironment(standard, more []string, options ...cel.EnvOption) (*Environment, error) {
	anything := cel.MapType(cel.StringType, cel.DynType) // PaC's types: what compiles there compiles here
	declared := map[string]*cel.Type{Body: anything, Headers: anything, Files: anything}
	if len(options) > 0 {
		declared[PAC] = anything
	}
	for _, name := range append(slices.Clone(standard), more...) {
		if declared[name] == nil && identifier(name) {
			declared[name] = cel.StringType
		}
	}
	e := &Environment{names: slices.Sorted(maps.Keys(declared))}
	e.private = slices.DeleteFunc(slices.Clone(e.names), func(name string) bool {
		return slices.Contains(append(standard, Body, Headers, Files), name)
	})
	for _, name := range e.names {
		options = append(options, cel.Variable(name, declared[name]))
	}
	options = append(options, pathChanged(), cel.ParserExpressionSizeLimit(maxSource), cel.ParserRecursionLimit(maxDepth),
		cel.ParserErrorRecoveryLimit(maxRepairs), cel.EnableMacroCallTracking())
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, fault.Operatorf(reasonCELEnvironment, "making the environment of CEL expressions: %w", err)
	}
	e.env = env
	return e, nil
}

// identifier reports whether a name can be written in an expression.
func identifier(name string) bool {
	for i, r := range name {
		letter := r == '_' || (r|0x20 >= 'a' && r|0x20 <= 'z')
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != "" && !strings.HasPrefix(name, "__")
}
