// SPDX-License-Identifier: Apache-2.0

package provider

import "regexp"

// skipCommand is what authors write in a commit's message to skip CI.
var skipCommand = regexp.MustCompile(`\[(skip ci|ci skip|skip tkn|tkn skip)\]`)

// SkipsCI reports whether a full commit message requests no CI. It is case-sensitive.
func SkipsCI(message string) bool { return skipCommand.MatchString(message) }

// ownComment is the invisible mark at the start of each of our comments.
var ownComment = regexp.MustCompile(`<!-- plumbline [a-z]+`)

// IsOwnComment reports whether a comment has our mark. Such a comment is ignored, no matter which
// account wrote it: with a user's token, we write in that user's name.
func IsOwnComment(comment string) bool { return ownComment.MatchString(comment) }
