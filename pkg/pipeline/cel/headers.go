// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"net/textproto"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// AnyCase is a value of Headers whose names are found in upper and lower case. They are listed as
// HTTP libraries write them: X-Github-Event.
func AnyCase(headers map[string]string) any {
	canonical := make(map[string]any, len(headers))
	for name, value := range headers {
		canonical[textproto.CanonicalMIMEHeaderKey(name)] = value
	}
	mapper, ok := types.DefaultTypeAdapter.NativeToValue(canonical).(traits.Mapper)
	if !ok {
		return canonical
	}
	return anyCase{mapper}
}

type anyCase struct{ traits.Mapper }

// Find implements traits.Mapper.
func (a anyCase) Find(key ref.Val) (ref.Val, bool) { return a.Mapper.Find(canonical(key)) }

// Get implements traits.Indexer.
func (a anyCase) Get(key ref.Val) ref.Val { return a.Mapper.Get(canonical(key)) }

// Contains implements traits.Container.
func (a anyCase) Contains(key ref.Val) ref.Val { return a.Mapper.Contains(canonical(key)) }

func canonical(key ref.Val) ref.Val {
	if name, ok := key.(types.String); ok {
		return types.String(textproto.CanonicalMIMEHeaderKey(string(name)))
	}
	return key
}
