// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// stepLog is the data of one step in log.md; its values are HTML.
type stepLog struct{ Task, Step, Lines, Missing string }

// withLog adds to a concluded check what is known of the logs of the failed steps.
func withLog(c *Check, log *v1alpha1.RunLog) {
	if log == nil || log.Hidden {
		return
	}
	var data struct {
		Steps   []stepLog
		Missing string
	}
	for _, step := range log.Steps {
		data.Steps = append(data.Steps, stepLog{
			Task: line(step.Task), Step: line(step.Step), Lines: escapeLog(step.Text), Missing: missing(step.Missing),
		})
		c.LogLine = cmp.Or(c.LogLine, lastLine(step.Text))
	}
	if data.Missing = missing(log.Missing); log.Pending() && len(log.Steps) == 0 {
		data.Missing = logPending
	}
	if c.Log = render("log.md", data); c.Log != "" {
		c.Text += "\n\n" + c.Log
	}
}

// missing says why a log is not shown; "" if it is.
func missing(m *v1alpha1.MissingLog) string {
	if m == nil {
		return ""
	}
	object := line(m.Object)
	switch m.Reason {
	case v1alpha1.LogForbidden:
		return fmt.Sprintf(logForbidden, object)
	case v1alpha1.LogGone:
		return logGone
	case v1alpha1.LogEmpty:
		return logEmpty
	case v1alpha1.LogSecret:
		return fmt.Sprintf(logUnmasked, object)
	case v1alpha1.LogSecrets:
		return logUnmaskable
	}
	return logUnavailable
}

// escapeLog makes the lines of a log safe in a pre element, also where the text is read before it
// is Markdown: no HTML, no mention of a user, no quick action of GitLab, no code fence.
func escapeLog(text string) string {
	if text == "" {
		return ""
	}
	lines := strings.Split(pre(text), "\n")
	entities := strings.NewReplacer("@", "&#64;", "`", "&#96;", "~~~", "&#126;&#126;&#126;")
	for i := range lines {
		lines[i] = entities.Replace(lines[i])
		if trimmed := strings.TrimLeft(lines[i], " \t"); strings.HasPrefix(trimmed, "/") {
			lines[i] = strings.TrimSuffix(lines[i], trimmed) + "&#47;" + trimmed[1:]
		}
	}
	return strings.Join(lines, "\n")
}

// lastLine returns the last line of a text.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
