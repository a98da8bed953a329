// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/plumbline-ci/plumbline/pkg/pipeline/glob"
)

const (
	// pathMethod is what authors write: "docs/**".pathChanged().
	pathMethod = "pathChanged"
	// pathFunction is what the macro expands to; authors cannot write its name.
	pathFunction = "@pathChanged"
	pathOverload = "path_changed_string_files"
	allFiles     = "all"
)

// pathChanged declares "glob".pathChanged() as a macro that reads the variable files. So the
// expression itself shows that it needs the changed files.
func pathChanged() cel.EnvOption {
	return func(env *cel.Env) (*cel.Env, error) {
		env, err := cel.Function(pathFunction, cel.Overload(
			pathOverload,
			[]*cel.Type{
				cel.StringType,
				cel.MapType(cel.StringType, cel.DynType),
			},
			cel.BoolType,
			cel.BinaryBinding(anyPath),
		))(env)
		if err != nil {
			return nil, err
		}
		return cel.Macros(cel.ReceiverMacro(pathMethod, 0,
			func(f cel.MacroExprFactory, target ast.Expr, _ []ast.Expr) (ast.Expr, *common.Error) {
				return f.NewCall(pathFunction, target, f.NewIdent(Files)), nil
			}))(env)
	}
}

// anyPath reports whether a changed file matches the pattern.
func anyPath(pattern, files ref.Val) ref.Val {
	text, ok := pattern.Value().(string)
	if !ok {
		return types.MaybeNoSuchOverloadErr(pattern)
	}
	compiled, err := glob.Compile("", text)
	if err != nil {
		return types.WrapErr(err)
	}
	paths, err := list(files)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Bool(slices.ContainsFunc(paths, compiled.Match))
}

// list returns files.all.
func list(files ref.Val) ([]string, error) {
	mapper, ok := files.(traits.Mapper)
	if !ok {
		return nil, errNoFiles
	}
	all, found := mapper.Find(types.String(allFiles))
	if !found {
		return nil, errNoFiles
	}
	paths, ok := all.Value().([]string)
	if !ok {
		return nil, errNoFiles
	}
	return paths, nil
}
