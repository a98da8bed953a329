// SPDX-License-Identifier: Apache-2.0

// Package yamlerror finds mistakes in the YAML of authors: the line of a syntax error, the value
// that its field does not accept, and the line and column of a value.
package yamlerror

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Path leads to a value. Its steps are the keys of mappings (string) and the indexes of lists
// (int).
type Path []any

// String writes a path as Kubernetes does: spec.tasks[2].name, and
// metadata.annotations[example.com/x].
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

// maxMerges bounds how many merge keys are followed for one key: a mapping may merge itself.
const maxMerges = 100

// Find returns the line and the column, from 1, of the value at a path. If the value is not written
// (a null), that is the place of its key. If the path does not exist, it is the place of the part
// that exists. Find returns 0, 0 if the text is not YAML.
func Find(text string, path Path) (line, column int) {
	var root yaml.Node
	if yaml.NewDecoder(strings.NewReader(text)).Decode(&root) != nil || len(root.Content) != 1 {
		return 0, 0
	}
	node, _ := Node(root.Content[0], path)
	return node.Line, node.Column
}

// Node returns the node at a path. If the path does not exist, it returns the part that exists, and
// whole is false.
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

// Offset returns the offset in bytes of a row and a column. Both count from 1, and columns count
// characters.
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

// followed returns the node that an alias refers to, and other nodes as they are.
func followed(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// valueOf returns the value of a key in a mapping, or nil. Of equal keys the last wins. A merge key
// counts as its mapping, written in its place, as in Kubernetes' library. For a null that is not
// written, valueOf returns the key.
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

// merged returns the value of a key in the value of a merge key: a mapping, or a list of mappings
// of which the first with the key wins.
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
