// SPDX-License-Identifier: Apache-2.0

package git

import (
	"strings"
	"unicode"
)

// maxRefName is the bytes of a name that Git services allow.
const maxRefName = 255

// IsRefName reports whether Git may have a branch or tag of the name
// (https://git-scm.com/docs/git-check-ref-format), as far as it matters in a URL: with ".." in it,
// a name would lead a call of the Git service to another repository.
func IsRefName(name string) bool {
	return name != "" && len(name) <= maxRefName && !strings.ContainsAny(name, `~^:?*[\`) &&
		!strings.Contains("/"+name, "/.") && !strings.Contains(name, "..") &&
		!strings.Contains("/"+name+"/", "//") && !strings.HasSuffix(name, ".") &&
		!strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}
