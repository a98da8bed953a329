// SPDX-License-Identifier: Apache-2.0

// Package mistake says where in an author's YAML a mistake is and what is wrong there: where the parser stops, which value its
// field does not take, and at which line and column a value is written.
package mistake

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Path leads to a value: keys of mappings, which are strings, and indexes of lists, which are ints.
type Path []any

// String writes a path as Kubernetes does: spec.tasks[2].name, and metadata.annotations[example.com/x].
func (p Path) String() string {
	var b strings.Builder
	for i, step := range p {
		key, isKey := step.(string)
		index, _ := step.(int)
		switch {
		case !isKey:
			key = "[" + strconv.Itoa(index) + "]"
		case strings.ContainsAny(key, "./ []"):
			key = "[" + key + "]"
		case i > 0:
			key = "." + key
		}
		b.WriteString(key)
	}
	return b.String()
}

// maxMerges bounds the merge keys that are followed for one key: an anchor may merge itself.
const maxMerges = 100

// Find returns the line and the column, from 1, of the value at a path of the YAML document in a text, and of the key if there is
// none. Of a path that is not there it is the end of the part that is. Both are 0 if the text is no YAML.
func Find(text string, path Path) (line, column int) {
	var root yaml.Node
	if yaml.NewDecoder(strings.NewReader(text)).Decode(&root) != nil || len(root.Content) != 1 {
		return 0, 0
	}
	node, _ := Node(root.Content[0], path)
	return node.Line, node.Column
}

// Node returns what is at a path of a node, as Find finds it; whole is false if that is only a part of the path.
func Node(node *yaml.Node, path Path) (found *yaml.Node, whole bool) {
	node = followed(node)
	for _, step := range path {
		key, isKey := step.(string)
		index, _ := step.(int)
		var next *yaml.Node
		switch {
		case isKey && node.Kind == yaml.MappingNode:
			merges := maxMerges
			next = valueOf(node, key, &merges)
		case !isKey && node.Kind == yaml.SequenceNode && index < len(node.Content):
			next = node.Content[index]
		}
		if next == nil {
			return node, false
		}
		node = followed(next)
	}
	return node, true
}

// Offset returns the offset, in bytes, of a row and a column of a text, which count from 1, the columns in characters.
func Offset(text string, row, column int) int {
	start := 0
	for ; row > 1; row-- {
		end := strings.IndexByte(text[start:], '\n')
		if end < 0 {
			return len(text)
		}
		start += end + 1
	}
	for i := range text[start:] {
		if column--; column < 1 {
			return start + i
		}
	}
	return len(text)
}

// RowColumn returns the row and the column of an offset of a text.
func RowColumn(text string, offset int) (row, column int) {
	before := text[:min(offset, len(text))]
	last := before[strings.LastIndexByte(before, '\n')+1:]
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(last) + 1
}

// followed is the node that an alias stands for.
func followed(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// valueOf returns the value of a key of a mapping, nil if it has none. Of several the last counts, as in Kubernetes' library, which
// copies what << merges at its place. Of a null that is not written it is the key.
func valueOf(mapping *yaml.Node, name string, merges *int) *yaml.Node {
	var found *yaml.Node
	for pair := range slices.Chunk(mapping.Content, 2) {
		key, value := pair[0], followed(pair[1])
		switch {
		case key.ShortTag() == "!!merge":
			if merged := merged(value, name, merges); merged != nil {
				found = merged
			}
		case followed(key).Value == name && value.Value == "" && value.ShortTag() == "!!null":
			found = key
		case followed(key).Value == name:
			found = value
		}
	}
	return found
}

// merged returns the value of a key in what << merges: a mapping, or a list of mappings of which the first counts.
func merged(value *yaml.Node, name string, merges *int) *yaml.Node {
	if *merges--; *merges < 0 {
		return nil
	}
	if value.Kind == yaml.MappingNode {
		return valueOf(value, name, merges)
	}
	for _, item := range value.Content {
		if item = followed(item); item.Kind != yaml.MappingNode {
			continue
		}
		if found := valueOf(item, name, merges); found != nil {
			return found
		}
	}
	return nil
}
