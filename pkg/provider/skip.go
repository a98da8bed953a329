// SPDX-License-Identifier: Apache-2.0

package provider

import "regexp"

// skipCommand is what authors write in a commit's message to have no CI (spec/compatibility.md 3.9).
var skipCommand = regexp.MustCompile(`\[(skip ci|ci skip|skip tkn|tkn skip)\]`)

// SkipsCI tells whether a full commit message asks for no CI. Upper and lower case differ.
func SkipsCI(message string) bool { return skipCommand.MatchString(message) }
