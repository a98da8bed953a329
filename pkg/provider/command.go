// SPDX-License-Identifier: Apache-2.0

package provider

import "regexp"

// commands are what people write on a pull request to tell CI what to do (spec/compatibility.md 5.1). They may stand on
// any line of a comment.
var commands = regexp.MustCompile(`(?m:^\s*/(re)?test(\s*$|[ \t]+\S+))|(?m:^\s*/cancel(\s*$|[ \t]+\S+))|` +
	`(^|\n)\s*/ok-to-test(\s+[a-fA-F0-9]{7,40})?\s*(\r|\n|$)`)

// IsCommand tells whether a comment has a command, so that it is no comment for pipelines.
func IsCommand(comment string) bool { return commands.MatchString(comment) }
