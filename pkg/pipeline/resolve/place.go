// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/yamlerror"
)

// place returns the file, and the line at which the document starts.
func (d *document) place() string {
	return fmt.Sprintf("%s%s:%d", d.by, d.file, d.line)
}

// placeOf returns the file, the line and the column at which the author wrote a value of the
// document.
func (d *document) placeOf(path yamlerror.Path) string {
	path = slices.Clone(path)
	for i, step := range path {
		if key, is := step.(string); is {
			path[i] = widthKept(key) // as it is in the text that is searched
		}
	}
	line, column := yamlerror.Find(widthKept(d.text), path)
	if line == 0 {
		return d.place()
	}
	return fmt.Sprintf("%s%s:%d:%d", d.by, d.file, d.before+line, column)
}

// invalidAt returns the fault for a wrong value of the document.
func (d *document) invalidAt(reason string, path yamlerror.Path, format string, args ...any) error {
	return fault.Invalidf(reason, "%s: %s", d.placeOf(path), fmt.Sprintf(format, args...))
}

// inExpression matches the place of a mistake in on-cel-expression: line and column of the
// expression.
var inExpression = regexp.MustCompile(`\b(on-cel-expression: )([0-9]+):([0-9]+): `)

// AsWritten changes the place that an error names in on-cel-expression. The error has a place in
// the expression with its placeholders replaced. The result has the place in the author's text.
func (s *Set) AsWritten(def Definition, scope *template.Scope, err error) error {
	text := def.Annotations[pipelinesascode.OnCELExpression]
	f := fault.Of(err)
	if f == nil || f.Class != fault.Invalid || !strings.Contains(text, "{{") {
		return err
	}
	read, unknown := scope.Text(text)
	at := inExpression.FindStringSubmatchIndex(f.Message)
	if unknown != nil || at == nil {
		return err
	}
	row, _ := strconv.Atoi(f.Message[at[4]:at[5]])
	column, _ := strconv.Atoi(f.Message[at[6]:at[7]])
	row, column = yamlerror.RowColumn(text, scope.Written(text, yamlerror.Offset(read, row, column)))
	return f.Reworded(fmt.Sprintf("%s%d:%d%s", f.Message[:at[4]], row, column, f.Message[at[7]:]))
}
