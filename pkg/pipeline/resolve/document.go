// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/yamlerror"
)

const (
	// maxFile limits one file's bytes. etcd stores no object that large, so no definition needs
	// more.
	maxFile = 1 << 20
	// maxDocuments limits the documents of one file, because each may become an entry of
	// GitEvent.status.
	maxDocuments = 500
	// maxDefinitions limits the PipelineRuns of all files, those that cannot be read included. Each
	// has an entry in GitEvent.status. The largest public repositories have some 200.
	maxDefinitions = 1000
	// maxNames limits the paths and names of all of them, in bytes of JSON.
	maxNames = 96 << 10
	// maxName is the API server's limit of a name, in bytes.
	maxName = 253
)

// document is one YAML document of a file.
type document struct {
	file string
	// index counts the documents of the file that have content, from 0.
	index int
	// line is the 1-based line of the file at which the content starts.
	line int
	// before is the number of the file's lines before text.
	before int
	// local is true for a file of .tekton. PaC replaces placeholders in such a file before it reads
	// YAML, and in other texts afterwards.
	local bool
	// text is the source, in which mistakes are located.
	text string
	// by is put in front of places in a fetched document. It is the annotation that refers to the
	// document.
	by string
	// apiVersion is set for documents that are read.
	apiVersion string
	// tree is the parsed content with template variables as the author wrote them; nil when it is
	// not a mapping.
	tree map[string]any
}

// separators returns the offsets of the lines that start a document: three dashes, and any text
// after a blank. The parser handles a comment or directive there.
func separators(text string) []int {
	var starts []int
	for at := 0; at < len(text); {
		line, _, _ := strings.Cut(text[at:], "\n")
		if rest, is := strings.CutPrefix(line, "---"); is &&
			(rest == "" || rest == "\r" || rest[0] == ' ' || rest[0] == '\t') {
			starts = append(starts, at)
		}
		at += len(line) + 1
	}
	return starts
}

// split cuts a file into its documents. It leaves out those without content.
func split(file git.File, local bool) ([]*document, error) {
	if len(file.Data) > maxFile {
		return nil, fault.Invalidf(reasonFileTooLarge, "%s has %d bytes, at most %d are read: split it",
			file.Path, len(file.Data), maxFile)
	}
	text := string(bytes.TrimPrefix(file.Data, []byte("\ufeff")))
	if local {
		text += "\n" // as PaC does: a block of text that ends the file ends in a line end
	}
	starts := append([]int{0}, separators(text)...)
	var documents []*document
	lines, held := 0, 0
	for i, start := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		source := text[start:end]
		skip, found := content(source)
		if found {
			held++
		}
		if found && held <= maxDocuments {
			documents = append(documents, &document{
				file: file.Path, index: len(documents), line: lines + skip + 1, before: lines, local: local, text: source,
			})
		}
		lines += strings.Count(source, "\n")
	}
	if held > maxDocuments {
		return nil, fault.Invalidf(reasonTooManyDocuments, "%s holds %d documents, at most %d are read: split it",
			file.Path, held, maxDocuments)
	}
	return documents, nil
}

// content reports whether a document has content, and how many lines precede it.
func content(source string) (line int, found bool) {
	for text := range strings.Lines(source) {
		text = strings.TrimSpace(text)
		if !strings.HasPrefix(text, "#") && !strings.HasPrefix(text, "%") && !onlySeparator(text) {
			return line, true
		}
		line++
	}
	return 0, false
}

// onlySeparator reports whether a trimmed line holds nothing but a document marker with or without
// a comment.
func onlySeparator(text string) bool {
	text = strings.TrimSpace(strings.TrimPrefix(text, "---"))
	return text == "" || text == "..." || strings.HasPrefix(text, "#")
}

// metadata returns the document's metadata, nil when it has none.
func (d *document) metadata() map[string]any {
	metadata, _ := d.tree["metadata"].(map[string]any)
	return metadata
}

// name returns the author's name of a PipelineRun, or its generateName, as it is written: checks
// are named after it.
func (d *document) name() (string, error) {
	for _, field := range []string{"name", "generateName"} {
		value, found := d.metadata()[field]
		if !found || value == nil {
			continue
		}
		name, isText := asText(value)
		if !isText {
			return "", d.invalidAt(reasonBadType, yamlerror.Path{"metadata", field},
				"metadata.%s must be text: put quotes around it", field)
		}
		if len(name) > maxName {
			return "", d.invalidAt(reasonBadName, yamlerror.Path{"metadata", field}, "metadata.%s is longer than %d bytes",
				field, maxName)
		}
		if name != "" {
			return name, nil
		}
	}
	return "", fault.Invalidf(reasonNoName,
		"%s: this PipelineRun has neither metadata.name nor metadata.generateName: give it one", d.place())
}

// annotations returns metadata.annotations.
func (d *document) annotations() (map[string]string, error) {
	annotations := map[string]string{}
	value := d.metadata()["annotations"]
	if value == nil {
		return annotations, nil
	}
	tree, isMapping := value.(map[string]any)
	if !isMapping {
		return nil, d.invalidAt(reasonBadType, yamlerror.Path{"metadata", "annotations"},
			"metadata.annotations must be a mapping")
	}
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		text, isText := asText(tree[key])
		if !isText && tree[key] != nil {
			return nil, d.invalidAt(reasonBadType, yamlerror.Path{"metadata", "annotations", key},
				"the annotation %s must be text: put quotes around its value", key)
		}
		annotations[key] = text
	}
	return annotations, nil
}
