// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"

	"github.com/plumbline-ci/plumbline/pkg/pipeline/glob"
)

const (
	// maxCost limits one evaluation. A step costs about one, and so do ten characters or ten files
	// that are compared with a pattern. The limit takes half a second at worst. It is enough for
	// nine long regular expressions over 3000 files, the most that GitHub lists. Kubernetes has the
	// same limit.
	maxCost = 1_000_000
	// maxRange limits lists.range, and maxText the texts that replace and join produce. cel-go
	// counts these values only after it has created them.
	maxRange = 10_000
	maxText  = 1 << 20
)

// costs charges for calls by the sizes of their values. cel-go does so only if it knows the types
// before it evaluates. It does not know those of the payload and of the changed files.
type costs struct{}

var _ interpreter.ActualCostEstimator = costs{}

// CallCost implements interpreter.ActualCostEstimator.
func (costs) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	cost := 0
	switch function {
	case pathFunction:
		cost = pathCost(args)
	case "_+_":
		cost = (textLength(args[0]) + textLength(args[1])) / 10
	case "_==_", "_!=_":
		cost = min(weight(args[0], maxCost), weight(args[1], maxCost)) / 10
	case "@in":
		cost = weight(args[1], maxCost)
	case "contains", "matches", "split":
		cost = (1 + textLength(args[0])/10) * (1 + textLength(args[1])/10)
	case "_<_",
		"_>_",
		"_<=_",
		"_>=_",
		"startsWith",
		"endsWith",
		"size",
		"string",
		"bytes",
		"int",
		"double",
		"timestamp",
		"duration":
		cost = textLength(args[0]) / 10
	case "sort", "@sortByAssociatedKeys":
		cost = weight(args[len(args)-1], maxCost)/10 + 10*entries(args[0])
	case "replace",
		"join",
		"format",
		"lowerAscii",
		"upperAscii",
		"trim",
		"substring",
		"strings.quote",
		"charAt",
		"indexOf",
		"lastIndexOf",
		"reverse",
		"slice",
		"flatten":
		cost = (textLength(args[0])+textLength(result))/10 + entries(args[0]) + entries(result)
	default:
		return nil
	}
	counted := uint64(1 + cost) //nolint:gosec // it is made of lengths
	return &counted
}

// flattened charges for the entries of the lists in a list, which cel-go does not count.
func flattened(_ []ref.Val, result ref.Val) *uint64 {
	counted := uint64(1 + entries(result)) //nolint:gosec // it is made of lengths
	return &counted
}

func pathCost(args []ref.Val) int {
	pattern, _ := args[0].Value().(string)
	paths, err := list(args[1])
	compiled, bad := glob.Compile("", pattern)
	if err != nil || bad != nil {
		return 0
	}
	return compiled.Steps(paths)
}

// textLength returns the length of a text, and 0 for anything else.
func textLength(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	}
	return 0
}

// entries returns the length of a list, and 0 for anything else.
func entries(v ref.Val) int {
	lister, ok := v.(traits.Lister)
	if !ok {
		return 0
	}
	n, _ := lister.Size().(types.Int)
	return int(n)
}

// weight counts the values in a value and their characters, up to a limit.
func weight(v ref.Val, limit int) int {
	n := 1 + textLength(v)
	if mapper, ok := v.(traits.Mapper); ok {
		for it := mapper.Iterator(); n < limit && it.HasNext() == types.True; {
			key := it.Next()
			n += weight(key, limit-n) + weight(mapper.Get(key), limit-n)
		}
		return n
	}
	if lister, ok := v.(traits.Lister); ok {
		for it := lister.Iterator(); n < limit && it.HasNext() == types.True; {
			n += weight(it.Next(), limit-n)
		}
	}
	return n
}

// bounded limits the functions whose result can be far larger than their arguments. The limit
// applies before they create the result.
func bounded(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	switch {
	case call.Function() == "replace" && len(call.Args()) >= 3:
		return guarded{call, replace}, nil
	case call.Function() == "join":
		return guarded{call, join}, nil
	}
	return i, nil
}

// guarded is a call whose implementation is replaced.
type guarded struct {
	interpreter.InterpretableCall
	do func(args []ref.Val) ref.Val
}

// Exec implements interpreter.InterpretableV2.
func (g guarded) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := make([]ref.Val, len(g.Args()))
	for i, arg := range g.Args() {
		args[i] = arg.Exec(frame)
		if types.IsUnknownOrError(args[i]) {
			return args[i]
		}
	}
	return types.LabelErrNode(g.ID(), g.do(args))
}

func replace(args []ref.Val) ref.Val {
	s, ok1 := args[0].(types.String)
	old, ok2 := args[1].(types.String)
	with, ok3 := args[2].(types.String)
	n := -1
	if len(args) == 4 {
		limit, ok := args[3].(types.Int)
		if !ok {
			return types.NoSuchOverloadErr()
		}
		n = int(limit)
	}
	if !ok1 || !ok2 || !ok3 {
		return types.NoSuchOverloadErr()
	}
	count := strings.Count(string(s), string(old))
	if n >= 0 {
		count = min(count, n)
	}
	if len(s)+count*max(0, len(with)-len(old)) > maxText {
		return tooLong()
	}
	return types.String(strings.Replace(string(s), string(old), string(with), n))
}

func join(args []ref.Val) ref.Val {
	lister, ok := args[0].(traits.Lister)
	if !ok {
		return types.NoSuchOverloadErr()
	}
	separator := ""
	if len(args) == 2 {
		s, ok := args[1].(types.String)
		if !ok {
			return types.NoSuchOverloadErr()
		}
		separator = string(s)
	}
	var b strings.Builder
	for it := lister.Iterator(); it.HasNext() == types.True; {
		item, ok := it.Next().(types.String)
		if !ok {
			return types.NewErr("join: an entry of the list is not a string")
		}
		if b.Len()+len(separator)+len(item) > maxText {
			return tooLong()
		}
		b.WriteString(string(item))
		if it.HasNext() == types.True {
			b.WriteString(separator)
		}
	}
	return types.String(b.String())
}

func tooLong() ref.Val {
	return types.NewErr("the text would have more than %d bytes", maxText)
}
