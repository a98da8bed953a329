// SPDX-License-Identifier: Apache-2.0

package match

import (
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/pipeline/glob"
)

const (
	branchPrefix = "refs/heads/"
	tagPrefix    = "refs/tags/"
)

// pattern is one entry of on-target-branch, on-path-change or on-path-change-ignore: PaC matches
// branches and paths by the same function.
type pattern struct {
	text string
	tag  bool
	glob *glob.Glob
}

// compile reads a pattern. A pattern for tags is compared as it is written. Any other is a pattern
// of branches, with or without refs/heads/. A pattern that is no valid glob still matches a name
// with the same text.
func compile(text string) (pattern, error) {
	p := pattern{text: text, tag: strings.HasPrefix(text, tagPrefix)}
	prefix, rest := branchPrefix, strings.TrimPrefix(text, branchPrefix)
	if p.tag {
		prefix, rest = "", text
	}
	var err error
	p.glob, err = glob.Compile(prefix, rest)
	return p, err
}

// match reports whether the pattern matches a ref or a path.
func (p pattern) match(ref string) bool {
	if p.text == ref {
		return true
	}
	if !p.tag && !strings.HasPrefix(ref, branchPrefix) && !strings.HasPrefix(ref, tagPrefix) {
		ref = branchPrefix + ref
	}
	return p.glob.Match(ref)
}

// matchRef reports whether a pattern of an author matches the ref of an event. It compares the
// texts first, and reads the pattern only if they differ.
func matchRef(text, ref string) (bool, error) {
	if text == ref {
		return true, nil
	}
	p, err := compile(text)
	if err != nil {
		return false, err
	}
	return p.match(ref), nil
}
