// SPDX-License-Identifier: Apache-2.0

package steplogs

import (
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
)

// maxLine is how many bytes of a line are searched: the time of a regular expression grows with
// the length of the line.
const maxLine = 2 << 10

// sources returns the source lines that the last lines of a masked log name: the first of them,
// each once.
func sources(lines []string, d config.ErrorDetection) (found []v1alpha1.SourceLine) {
	if !d.Detect {
		return nil
	}
	for _, line := range lines[max(0, len(lines)-d.Lines):] {
		s, ok := sourceOf(line, d)
		if !ok || slices.Contains(found, s) {
			continue
		}
		if found = append(found, s); len(found) == v1alpha1.MaxSources {
			break
		}
	}
	return found
}

// sourceOf returns the source line that a line of a log names. A path outside of the repository, a
// number that is no line, and an empty message are none.
func sourceOf(line string, d config.ErrorDetection) (s v1alpha1.SourceLine, ok bool) {
	line = strings.ToValidUTF8(line[:min(len(line), maxLine)], "")
	match := d.Pattern.FindStringSubmatch(line)
	if match == nil {
		return s, false
	}
	group := func(name string) string { return strings.TrimSpace(match[d.Pattern.SubexpIndex(name)]) }
	number, err := strconv.ParseInt(group(config.GroupLine), 10, 64)
	if err != nil || number < 1 || number > math.MaxInt32 {
		return s, false
	}
	name := group(config.GroupFilename)
	file := path.Clean(name)
	if name == "" || file == "." || !fs.ValidPath(file) || strings.ContainsAny(file, "\n\r\t") ||
		v1alpha1.Length(file) > v1alpha1.MaxSourcePath {
		return s, false
	}
	message := strings.TrimLeft(group(config.GroupError), ": ") // the standard pattern leaves the colon after a column
	s = v1alpha1.SourceLine{Path: file, Line: int32(number), Message: end(message, v1alpha1.MaxSourceMessage)}
	return s, s.Message != ""
}
