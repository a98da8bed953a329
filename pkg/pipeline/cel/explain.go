// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

const (
	// maxShown is how many bytes of one value a reason shows, and maxClause how many of the clause.
	// maxValues and maxPaths limit how many values and paths it shows. Reasons are stored for every
	// pipeline.
	maxShown  = 64
	maxClause = 256
	maxValues = 6
	maxPaths  = 3
)

// WhyNot returns the first false condition of those joined by &&, with the values of PaC's
// variables in it. It never shows the values of custom params, because they may be secret.
func (o Outcome) WhyNot() string {
	x := explained{Outcome: o, state: o.observe()}
	return x.whyNot()
}

// explained is an outcome with the values of all parts of its expression.
type explained struct {
	Outcome
	state interpreter.EvalState
}

// observe evaluates the expression a second time, and keeps the values of all its parts. The first
// evaluation was within the limits. When the budget is exhausted, observe returns no values.
func (o Outcome) observe() interpreter.EvalState {
	nothing := interpreter.NewEvalState()
	if err := o.program.environment.budget.Spend(o.cost); err != nil {
		return nothing
	}
	program, err := o.program.environment.env.Program(o.program.ast, cel.EvalOptions(cel.OptTrackState),
		cel.CustomDecoratorV2(bounded))
	if err != nil {
		return nothing
	}
	_, details, err := program.Eval(map[string]any(o.values))
	if err != nil || details == nil {
		return nothing
	}
	return details.State()
}

func (o explained) whyNot() string {
	clause := o.firstFalse(o.program.ast.NativeRep().Expr())
	what, verdict := clause, "is false"
	if clause.Kind() == ast.CallKind && clause.AsCall().FunctionName() == "!_" {
		what, verdict = clause.AsCall().Args()[0], "is true and the expression negates it"
	}
	text := shorten(o.show(what), maxClause) + " " + verdict
	if seen := o.seen(what); len(seen) > 0 {
		text += " (" + strings.Join(seen, ", ") + ")"
	}
	return text
}

// firstFalse returns the first operand of a conjunction that is false.
func (o explained) firstFalse(e ast.Expr) ast.Expr {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != "_&&_" {
		return e
	}
	for _, arg := range e.AsCall().Args() {
		if value, known := o.state.Value(arg.ID()); known && value == types.False {
			return o.firstFalse(arg)
		}
	}
	return e
}

// show writes a part of the expression on one line.
func (o explained) show(e ast.Expr) string {
	if pattern, is := pathCall(e); is {
		return pathMethod + "(" + o.show(pattern) + ")"
	}
	text, err := cel.ExprToString(e, o.program.ast.NativeRep().SourceInfo())
	if err != nil {
		return "the expression"
	}
	return strings.Join(strings.Fields(text), " ")
}

// pathCall returns the pattern of a call of pathChanged.
func pathCall(e ast.Expr) (ast.Expr, bool) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != pathFunction {
		return nil, false
	}
	return e.AsCall().Args()[0], true
}

// seen lists the values of the variables in a clause.
func (o explained) seen(clause ast.Expr) []string {
	var found []string
	add := func(e ast.Expr, text string) {
		entry := shorten(o.show(e), maxShown) + " is " + text
		if e.Kind() == ast.IdentKind && e.AsIdent() == Files {
			entry = text
		}
		if !slices.Contains(found, entry) && len(found) < maxValues {
			found = append(found, entry)
		}
	}
	inner := map[int64]bool{} // nodes that are part of one that is shown
	ast.PreOrderVisit(clause, ast.NewExprVisitor(func(e ast.Expr) {
		if inner[e.ID()] {
			hide(inner, e)
			return
		}
		if !readable(e) {
			return
		}
		if text, ok := o.text(e); ok {
			add(e, text)
			hide(inner, e)
		}
	}))
	return found
}

// hide marks the operand of a selection. It is shown only as part of the selection.
func hide(inner map[int64]bool, e ast.Expr) {
	switch e.Kind() {
	case ast.SelectKind:
		inner[e.AsSelect().Operand().ID()] = true
	case ast.CallKind:
		if args := e.AsCall().Args(); e.AsCall().FunctionName() == "_[_]" {
			inner[args[0].ID()] = true
		}
	}
}

// readable reports whether a node is one of PaC's variables, or a field of one.
func readable(e ast.Expr) bool {
	switch e.Kind() {
	case ast.IdentKind:
		return slices.Contains(
			[]string{Event, EventType, EventTitle, TargetBranch, SourceBranch, TargetURL, SourceURL, Files}, e.AsIdent(),
		)
	case ast.SelectKind:
		return !e.AsSelect().IsTestOnly() && rooted(e)
	case ast.CallKind:
		return e.AsCall().FunctionName() == "_[_]" && rooted(e)
	}
	return false
}

// rooted reports whether a chain of fields and keys begins at body, headers or files.
func rooted(e ast.Expr) bool {
	switch e.Kind() {
	case ast.IdentKind:
		return slices.Contains([]string{Body, Headers, Files}, e.AsIdent())
	case ast.SelectKind:
		return rooted(e.AsSelect().Operand())
	case ast.CallKind:
		call := e.AsCall()
		return call.FunctionName() == "_[_]" && call.Args()[1].Kind() == ast.LiteralKind && rooted(call.Args()[0])
	}
	return false
}

// text returns a node's value as text, if it has one that is short enough.
func (o explained) text(e ast.Expr) (string, bool) {
	if e.Kind() == ast.IdentKind {
		switch value := o.values[e.AsIdent()].(type) {
		case string:
			return strconv.Quote(shorten(value, maxShown)), true
		case map[string]any:
			paths, _ := value[allFiles].([]string)
			return "changed: " + showPaths(paths), true
		}
		return "", false
	}
	value, known := o.state.Value(e.ID())
	if !known {
		return "", false
	}
	return scalar(value)
}

func scalar(value ref.Val) (string, bool) {
	switch v := value.(type) {
	case types.String:
		return strconv.Quote(shorten(string(v), maxShown)), true
	case types.Bool, types.Int, types.Uint, types.Double, types.Null:
		return fmt.Sprint(v.Value()), true
	}
	if paths, ok := value.Value().([]string); ok {
		return showPaths(paths), true
	}
	return "", false
}

func showPaths(paths []string) string {
	if len(paths) == 0 {
		return "no file"
	}
	var shown []string
	for _, path := range paths[:min(len(paths), maxPaths)] {
		shown = append(shown, shorten(path, maxShown))
	}
	text := strings.Join(shown, " ")
	if more := len(paths) - maxPaths; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
