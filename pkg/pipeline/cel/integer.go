// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"math"

	"github.com/google/cel-go/common/types"
)

// Integer reports whether the expression may yield a whole number, as far as its type is known
// before it is evaluated.
func (p *Program) Integer() bool {
	t := p.ast.OutputType()
	return t.IsExactType(types.IntType) || t.IsExactType(types.UintType) || t.IsExactType(types.DynType)
}

// Int returns the outcome of an expression that yields a whole number. Any other outcome is a
// fault.Invalid. A number of JSON is a double, even without a fraction: int() makes it whole.
func (o Outcome) Int() (int64, error) {
	switch value := o.value.(type) {
	case types.Int:
		return int64(value), nil
	case types.Uint:
		return int64(min(uint64(value), math.MaxInt64)), nil //nolint:gosec // it is bounded
	}
	return 0, invalid(1, 0,
		"the expression is a "+typeName(o.value)+", it must be a whole number: int() makes one of a double or a string")
}
