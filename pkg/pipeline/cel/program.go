// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// ReasonBad is the reason of all faults of this package that the author can fix.
const ReasonBad = "BadExpression"

// maxMessage is how many bytes of cel-go's message an error shows.
const maxMessage = 512

var errNoFiles = errors.New("the changed files are not a map with a list of paths under the key all")

// Values are the values of variables by name: strings, and maps for body, headers, files and pac.
// The list under files' key all is a []string. A declared variable without a value is not known
// yet.
type Values map[string]any

// ChangedFiles returns the value of Files. A nil list counts as empty. The list "all" has all
// files, sorted.
func ChangedFiles(added, deleted, modified, renamed []string) map[string]any {
	all := slices.Concat(added, deleted, modified, renamed)
	slices.Sort(all)
	m := map[string]any{allFiles: slices.Compact(all)}
	for key, paths := range map[string][]string{
		"added": added, "deleted": deleted, "modified": modified, "renamed": renamed,
	} {
		m[key] = append([]string{}, paths...)
	}
	return m
}

// Program is a compiled expression. It is immutable.
type Program struct {
	environment *Environment
	ast         *cel.Ast
	program     cel.Program
	// mentioned are the names that it reads, as variables, fields or keys.
	mentioned map[string]bool
}

// Compile checks an expression. The error is a fault.Invalid that begins with line and column
// ("1:12: …").
func (e *Environment) Compile(text string) (*Program, error) {
	if err := e.budget.Spend(compileSteps + compileStepsPerByte*len(text)); err != nil {
		return nil, err
	}
	checked, issues := e.env.Compile(text)
	if issues.Err() != nil {
		first := slices.MinFunc(issues.Errors(), func(a, b *cel.Error) int {
			if a.Location.Line() != b.Location.Line() {
				return a.Location.Line() - b.Location.Line()
			}
			return a.Location.Column() - b.Location.Column()
		})
		return nil, invalid(max(1, first.Location.Line()), max(0, first.Location.Column()), e.plain(first.Message))
	}
	// Not with cel.OptTrackState: with it cel-go silently counts no cost.
	program, err := e.env.Program(
		checked,
		cel.EvalOptions(cel.OptPartialEval),
		cel.CostTracking(costs{}),
		cel.CostLimit(maxCost),
		cel.CustomDecoratorV2(bounded),
		cel.CostTrackerOptions(interpreter.OverloadCostTracker("list_flatten", flattened),
			interpreter.OverloadCostTracker("list_flatten_int", flattened)),
	)
	if err != nil {
		return nil, invalid(1, 0, err.Error())
	}
	p := &Program{environment: e, ast: checked, program: program, mentioned: map[string]bool{}}
	p.walk(p.mention)
	return p, nil
}

// undeclared matches cel-go's message about a variable or function that does not exist.
var undeclared = regexp.MustCompile(`^undeclared reference to '(.*)' \(in container ''\)$`)

// plain returns a message of the compiler in plain words.
func (e *Environment) plain(message string) string {
	parts := undeclared.FindStringSubmatch(message)
	if parts == nil {
		return message
	}
	known := slices.Clone(e.names)
	for name := range e.env.Functions() {
		known = append(known, name)
	}
	for _, macro := range e.env.Macros() {
		known = append(known, macro.Function())
	}
	slices.Sort(known)
	return parts[1] + " is not defined" + text.DidYouMean(parts[1], known)
}

// Boolean reports whether the expression may be true or false, as far as that is known before it is
// evaluated.
func (p *Program) Boolean() bool {
	t := p.ast.OutputType()
	return t.IsExactType(types.BoolType) || t.IsExactType(types.DynType)
}

// Outcome is the result of an evaluation.
type Outcome struct {
	// Missing names the variables that must be known before the outcome can be determined. The
	// other fields are empty then.
	Missing []string
	program *Program
	value   ref.Val
	values  Values
	// cost is what the evaluation cost.
	cost int
}

// Evaluate evaluates the expression. Variables without a value make the outcome Missing only if it
// depends on them. The error is a fault.Invalid that begins with line and column.
func (p *Program) Evaluate(values Values) (Outcome, error) {
	var unknown []*cel.AttributePatternType
	for _, name := range p.environment.names {
		if _, known := values[name]; !known {
			unknown = append(unknown, cel.AttributePattern(name))
		}
	}
	activation, err := cel.PartialVars(map[string]any(values), unknown...)
	if err != nil {
		return Outcome{}, fault.Operatorf(reasonCELValues, "binding the variables of a CEL expression: %w", err)
	}
	if err := p.environment.budget.Spend(evaluateSteps); err != nil {
		return Outcome{}, err
	}
	value, details, err := p.program.Eval(activation)
	cost := p.charge(details)
	if err != nil {
		return Outcome{}, p.failed(err, values)
	}
	if unknown, is := value.(*types.Unknown); is {
		return Outcome{Missing: missing(unknown)}, nil
	}
	return Outcome{program: p, value: value, values: values, cost: cost}, nil
}

// charge subtracts the cost of an evaluation from the budget, and returns it. If the budget is then
// exhausted, the next evaluation fails.
func (p *Program) charge(details *cel.EvalDetails) int {
	cost := uint64(maxCost) // it was stopped at the limit
	if counted := details.ActualCost(); counted != nil {
		cost = min(cost, *counted)
	}
	_ = p.environment.budget.Spend(int(cost))
	return int(cost)
}

// missing names the variables that made a value unknown.
func missing(unknown *types.Unknown) []string {
	var names []string
	for _, id := range unknown.IDs() {
		trails, _ := unknown.GetAttributeTrails(id)
		for _, trail := range trails {
			names = append(names, strings.TrimPrefix(trail.Variable(), "."))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Bool returns the outcome of a condition. If it is neither true nor false, the error is a
// fault.Invalid.
func (o Outcome) Bool() (bool, error) {
	value, ok := o.value.(types.Bool)
	if !ok {
		return false, invalid(1, 0, "the expression is a "+typeName(o.value)+", it must be true or false")
	}
	return bool(value), nil
}

// Value returns the outcome as encoding/json would decode it: nil, bool, float64, string, []any or
// map[string]any. If JSON cannot express the outcome, the error is a fault.Invalid.
func (o Outcome) Value() (any, error) {
	converted, err := o.value.ConvertToNative(types.JSONValueType)
	if err != nil {
		return nil, invalid(1, 0, err.Error())
	}
	json, ok := converted.(interface{ AsInterface() any })
	if !ok {
		return nil, invalid(1, 0, "a "+typeName(o.value)+" cannot be written as JSON")
	}
	return json.AsInterface(), nil
}

func typeName(v ref.Val) string {
	if v == nil {
		return "null"
	}
	return v.Type().TypeName()
}

// failed places an error of the evaluation.
func (p *Program) failed(err error, values Values) error {
	var canceled interpreter.EvalCancelledError
	if errors.As(err, &canceled) {
		return fault.Invalidf(ReasonSteps, "1:1: the expression takes too many steps: make it shorter, or its lists")
	}
	message := p.environment.withoutPrivate(err.Error(), values)
	var node *types.Err
	if errors.As(err, &node) {
		if at := p.ast.NativeRep().SourceInfo().GetStartLocation(node.NodeID()); at.Line() > 0 {
			return invalid(at.Line(), at.Column(), message)
		}
	}
	return invalid(1, 0, message)
}

// minPrivate is the length of the shortest value that is removed from messages. Shorter values are
// no secrets, and they are parts of many words.
const minPrivate = 4

// withoutPrivate replaces the values of private variables in a message of cel-go: such messages
// quote keys and strings.
func (e *Environment) withoutPrivate(message string, values Values) string {
	hide := func(value any) {
		text, ok := value.(string)
		if !ok || len(text) < minPrivate {
			return
		}
		quoted := strconv.Quote(text)
		message = strings.ReplaceAll(message, quoted[1:len(quoted)-1], "***")
		message = strings.ReplaceAll(message, text, "***")
	}
	for _, name := range e.private {
		hide(values[name])
		if members, ok := values[name].(map[string]any); ok {
			for _, value := range members {
				hide(value)
			}
		}
	}
	return message
}

// invalid returns a fault for the mistake at a line, counted from 1, and a column, counted from 0.
func invalid(line, column int, message string) error {
	message = strings.Join(strings.Fields(strings.ToValidUTF8(message, "\ufffd")), " ")
	message = strings.ReplaceAll(message, pathFunction, pathMethod)
	return fault.Invalidf(ReasonBad, "%d:%d: %s", line, column+1, shorten(message, maxMessage))
}

// shorten cuts a text to limit bytes.
func shorten(s string, limit int) string { return text.Shorten(s, limit, text.Bytes) }

// Undeclared returns a fault.Invalid for an expression that depends on a variable that does not
// exist for the event. It names the place where the expression first reads the variable.
func (p *Program) Undeclared(name string) error {
	line, column := 1, 0
	found := false
	p.walk(func(e ast.Expr) {
		if found || e.Kind() != ast.IdentKind || e.AsIdent() != name {
			return
		}
		found = true
		if at := p.ast.NativeRep().SourceInfo().GetStartLocation(e.ID()); at.Line() > 0 {
			line, column = at.Line(), at.Column()
		}
	})
	return invalid(line, column, name+" is not defined: the param does not apply to this event")
}
