// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"math"

	"go.yaml.in/yaml/v3"

	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// plain is a placeholder that is a whole scalar without quotes. Its value may become a node of
// another kind.
type plain string

// asText returns the text of a node that is a text.
func asText(value any) (string, bool) {
	if placeholder, is := value.(plain); is {
		return string(placeholder), true
	}
	if scalar, is := value.(block); is {
		return scalar.text, true
	}
	text, is := value.(string)
	return text, is
}

func (b *builder) scalar(node *yaml.Node) (any, error) {
	switch node.ShortTag() {
	case "!!null":
		return nil, nil // null is a value of YAML.
	case "!!bool":
		if truth, is := oldBoolean(node.Value); is {
			return truth, nil
		}
		var value bool
		return decodeScalar(b, node, &value)
	case "!!int":
		return b.integer(node)
	case "!!float":
		var value float64
		if _, err := decodeScalar(b, node, &value); err != nil {
			return nil, err
		}
		if math.IsInf(value, 0) || math.IsNaN(value) {
			return node.Value, nil // JSON has no such number.
		}
		return value, nil
	case "!!binary":
		var value string
		return decodeScalar(b, node, &value)
	}
	text := b.masks.restore(node.Value)
	b.text += max(0, len(text)-len(node.Value)) // each alias has its own
	if node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return b.block(node, text), nil
	}
	if node.Style != 0 {
		return text, nil
	}
	return unquoted(text), nil
}

// unquoted reads a text that has neither quotes nor a tag.
func unquoted(text string) any {
	if truth, is := oldBoolean(text); is {
		return truth
	}
	if template.Whole(text) {
		return plain(text)
	}
	return text
}

// oldBoolean reads the plain words that are booleans in YAML 1.1, and so in Kubernetes.
func oldBoolean(word string) (truth, is bool) {
	switch word {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return true, true
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return false, true
	}
	return false, false
}

func (b *builder) integer(node *yaml.Node) (any, error) {
	var signed int64
	if err := node.Decode(&signed); err == nil {
		return signed, nil
	}
	var unsigned uint64
	return decodeScalar(b, node, &unsigned)
}

// decodeScalar reads a node as the type its tag promises.
func decodeScalar[T any](b *builder, node *yaml.Node, into *T) (any, error) {
	if err := node.Decode(into); err != nil {
		return nil, b.invalid(node, "the value is not what its tag "+node.ShortTag()+" says")
	}
	return *into, nil
}
