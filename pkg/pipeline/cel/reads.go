// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
)

// walk visits every node of the expression, with macros expanded.
func (p *Program) walk(visit func(ast.Expr)) {
	ast.PostOrderVisit(p.ast.NativeRep().Expr(), ast.NewExprVisitor(visit))
}

// Mentions reports whether the expression reads one of the names, as a variable, a field or a key.
func (p *Program) Mentions(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return p.mentioned[name] })
}

// Reads reports whether the expression reads a variable. A field or a key of the same name does not
// count.
func (p *Program) Reads(variable string) bool {
	found := false
	p.walk(func(e ast.Expr) { found = found || e.Kind() == ast.IdentKind && e.AsIdent() == variable })
	return found
}

// mention records the name that a node reads.
func (p *Program) mention(e ast.Expr) {
	switch e.Kind() {
	case ast.IdentKind:
		p.mentioned[e.AsIdent()] = true
	case ast.SelectKind:
		p.mentioned[e.AsSelect().FieldName()] = true
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != "_[_]" || len(call.Args()) != 2 || call.Args()[1].Kind() != ast.LiteralKind {
			return
		}
		if key, ok := call.Args()[1].AsLiteral().Value().(string); ok {
			p.mentioned[key] = true
		}
	}
}

// Quotes reports whether one of the expression's strings contains the text.
func (p *Program) Quotes(text string) bool {
	found := false
	p.walk(func(e ast.Expr) {
		if e.Kind() != ast.LiteralKind {
			return
		}
		literal, _ := e.AsLiteral().Value().(string)
		found = found || strings.Contains(literal, text)
	})
	return found
}
