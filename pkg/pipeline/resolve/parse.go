// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/yamlerror"
)

// Limits of one document once its aliases are followed: far above what the API server accepts in an
// object (3 MiB), and low enough that a few hundred bytes of nested aliases cannot fill the memory.
const (
	maxNodes = 100_000
	maxText  = 4 << 20
	maxDepth = 200
)

// parse fills tree, unless that would be more than is read of one document or than the event has
// left; what it takes is added to the event's. Placeholders that YAML would read as flow mappings
// are hidden from the parser and put back verbatim.
func (d *document) parse(spent *budget) error {
	hidden, masks := mask(d.text)
	if err := d.countable(hidden); err != nil {
		return err
	}
	decoder := yaml.NewDecoder(strings.NewReader(hidden))
	var root yaml.Node
	err := decoder.Decode(&root)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return d.syntaxError(hidden, masks, err, spent)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return fault.Invalidf(reasonBadYAML, "%s: the document holds another one: separate them with a line that is ---",
			d.place())
	}
	b := builder{document: d, event: *spent, masks: masks, blocks: map[*yaml.Node]any{}}
	if d.local {
		b.source = hidden
	}
	value, err := b.value(&root, 0)
	if err != nil {
		return err
	}
	spent.nodes, spent.text = spent.nodes+b.nodes, spent.text+b.text
	d.tree, _ = value.(map[string]any)
	return nil
}

// maxSearched bounds the bytes of one event's documents in which the line of a syntax error is
// searched. A search parses a document some 15 times.
const maxSearched = 128 << 10

// syntaxError says where in the file the text is not YAML. hidden is what the parser has read.
func (d *document) syntaxError(hidden string, masks masks, reason error, spent *budget) error {
	find := yamlerror.Syntax
	if spent.searched += len(hidden); spent.searched > maxSearched {
		find = yamlerror.Said
	}
	line, words := find(hidden, reason)
	words = masks.restore(words)
	place := fmt.Sprintf("%s:%d", d.file, max(d.before+line, d.line))
	if lines := strings.Split(d.text, "\n"); line <= len(lines) {
		if column := yamlerror.Column(lines[line-1], words); column > 0 {
			place += ":" + strconv.Itoa(column)
		}
	}
	return fault.Invalidf(reasonBadYAML, "%s: this is not YAML: %s", place, words)
}

// builder turns nodes into the values that JSON knows, reading scalars as Kubernetes does.
type builder struct {
	*document
	// event is what was read for it before.
	event budget
	masks masks
	// source is the text that is read, "" if its placeholders are replaced in what YAML made of it;
	// lines are its lines, once they are needed.
	source string
	lines  []string
	// blocks are the block scalars that were read, each once for all its aliases.
	blocks map[*yaml.Node]any
	// nodes and text are how many nodes, and bytes of text, were read.
	nodes int
	text  int
}

func (b *builder) value(node *yaml.Node, depth int) (any, error) {
	b.nodes++
	b.text += len(node.Value)
	if b.nodes > maxNodes || b.text > maxText || depth > maxDepth {
		return nil, b.invalid(node,
			"the document is nested too deeply, refers to itself or is too large once its aliases are followed")
	}
	if (budget{nodes: b.event.nodes + b.nodes, text: b.event.text + b.text}).over() {
		return nil, tooMuch(b.place())
	}
	switch node.Kind {
	case yaml.DocumentNode:
		return b.value(node.Content[0], depth)
	case yaml.AliasNode:
		return b.value(node.Alias, depth+1)
	case yaml.SequenceNode:
		list := make([]any, 0, len(node.Content))
		for _, item := range node.Content {
			value, err := b.value(item, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	case yaml.MappingNode:
		return b.mapping(node, depth)
	}
	return b.scalar(node)
}

// mapping reads a mapping as Kubernetes' library does. Of equal keys the last wins. A merge key
// counts as its mapping, written in its place: it replaces keys before it, and keys after it
// replace its own.
func (b *builder) mapping(node *yaml.Node, depth int) (any, error) {
	mapping := map[string]any{}
	for pair := range slices.Chunk(node.Content, 2) {
		key, value := pair[0], pair[1]
		merges := key.ShortTag() == "!!merge"
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		name, err := b.key(key)
		if err != nil {
			return nil, err
		}
		b.text += len(key.Value)
		read, err := b.value(value, depth+1)
		if err != nil {
			return nil, err
		}
		if !merges {
			mapping[name] = read
			continue
		}
		list, isList := read.([]any)
		if !isList {
			list = []any{read}
		}
		if isList && value.Kind == yaml.AliasNode || !merge(mapping, list) {
			return nil, b.invalid(value, "<< must be followed by a mapping or a list of mappings")
		}
	}
	return mapping, nil
}

// key returns the text that Kubernetes makes of a key: of the plain word on, e.g., "true", and of
// 010 "8".
func (b *builder) key(node *yaml.Node) (string, error) {
	if node.Kind == yaml.ScalarNode {
		read, err := b.scalar(node)
		if err != nil {
			return "", err
		}
		if text, is := asText(read); is {
			return text, nil
		}
		switch read := read.(type) {
		case bool:
			return strconv.FormatBool(read), nil
		case int64:
			return strconv.FormatInt(read, 10), nil
		case float64:
			return strconv.FormatFloat(read, 'g', -1, 32), nil // with the digits of 32 bits, as Kubernetes writes it
		}
	}
	return "", b.invalid(node, "a key must be a single word or text")
}

// merge copies the keys of a list of mappings; the first mapping with a key wins. It returns false
// if the list holds anything else.
func merge(into map[string]any, list []any) bool {
	for _, item := range slices.Backward(list) {
		mapping, isMapping := item.(map[string]any)
		if !isMapping {
			return false
		}
		maps.Copy(into, mapping)
	}
	return true
}

func (b *builder) invalid(node *yaml.Node, why string) error {
	return fault.Invalidf(reasonBadYAML, "%s:%d: %s", b.file, b.before+node.Line, why)
}
