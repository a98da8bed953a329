// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"
)

// Code within a line hides nothing: people read "Opened with `<?php`" as text.
func TestCodeWithinALineHidesNoCommand(t *testing.T) {
	t.Parallel()
	for comment, want := range map[string]bool{
		"It begins with `<?php` now\n/test":               true,
		"`a` and `<!--` and `<!D` and `<![CDATA[`\n/test": true,
		"`<!--` <!-- `\n/test\n-->":                       false,
		"a <!-- `b`\n/test":                               true, // no comment: it has no end
		"a <!-- `b`\n/test -->":                           false,
		"``<?php``\n/test\n?>":                            true,
		"`` a ` <?php ``\n/test\n?>":                      true,
		"``` ` `` <? ``` x `<!--`\n/test\n?>\n-->":        true,
		"``<?php`\n/test\n?>":                             false, // in doubt
		"`` ` <? `\n/test\n?>":                            false,
		"\\`<?php `\n/test\n?>":                           false,
		"<a title=\"`\"> <!-- `\n/test\n-->":              false,
		"a ` b\nc ` <!-- `\n/test\n-->":                   false,
		"`\n\n`<?php`\n/test":                             true,
		"`a` /test":                                       false,
		"x `<?`\n/test `<?`":                              true,
	} {
		if found, _ := Parse(comment, "", false); (found != nil) != want {
			t.Errorf("%q: a command: %v, want %v", comment, found != nil, want)
		}
	}
}

// A page does not show the definition of a link, nor of a footnote that nothing refers to. Other
// brackets hide nothing.
func TestDefinitionsHideCommands(t *testing.T) {
	t.Parallel()
	for comment, want := range map[string]bool{
		"[x]:\n/test":                   false,
		"[x\n/test\n]: y":               false,
		"[x\\]: y\n/test\n]: z":         false,
		"[x]: y \"title\n/test\n\"":     false,
		"- [x]:\n/test":                 false,
		"1. a\n\n    [x]:\n/test":       false,
		"[^1]: a footnote\n/test":       false,
		"[x]: y\n\n/test":               true,
		"    [x]:\n/test":               true, // code
		"- [x] done: a task\n/test":     true,
		"- [ ] a task\n/test":           true,
		"[a link](https://x): y\n/test": true,
		"see [x]:\n/test":               true,
		"/test\n[x]:":                   true,
		"[x]: y\n```\ncode\n```\n/test": true,
	} {
		if found, _ := Parse(comment, "", false); (found != nil) != want {
			t.Errorf("%q: a command: %v, want %v", comment, found != nil, want)
		}
	}
}

// Each part of a line is read a few times, whatever it consists of.
func BenchmarkCodeWithinALine(b *testing.B) {
	for _, part := range []string{"<!---->", "`<!--`", "`a`", "`", "``` `` ", "<?", "<!A<?<!--"} {
		b.Run(part, func(b *testing.B) {
			for b.Loop() {
				_, _ = Parse(strings.Repeat(part, maxComment/len(part))+"<!--", "", false)
			}
		})
	}
}
