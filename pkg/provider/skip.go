// SPDX-License-Identifier: Apache-2.0

package provider

import "regexp"

// skipCommand is what authors write in a commit's message to have no CI.
var skipCommand = regexp.MustCompile(`\[(skip ci|ci skip|skip tkn|tkn skip)\]`)

// SkipsCI reports whether a full commit message asks for no CI. Upper and lower case differ.
func SkipsCI(message string) bool { return skipCommand.MatchString(message) }

// ownComment is the mark that each comment of ours has, unseen by people, with what it is about.
var ownComment = regexp.MustCompile(`<!-- plumbline [a-z]+`)

// IsOwnComment reports whether a comment has our mark. It is ignored whoever wrote it: a person's
// token writes in that person's name.
func IsOwnComment(comment string) bool { return ownComment.MatchString(comment) }
