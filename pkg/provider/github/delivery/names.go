// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"regexp"

	"github.com/plumbline-ci/plumbline/pkg/git"
)

// Name is GitEventSpec.provider of the events this package decodes.
const Name = git.GitHub

// branchPrefix starts the ref of a branch.
const branchPrefix = "refs/heads/"

// GitHub's own alphabets: names become parts of API paths.
var (
	ownerPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)
	namePattern  = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
)

// ValidName reports whether GitHub could have given an account and its repository these names.
func ValidName(owner, name string) bool {
	return ownerPattern.MatchString(owner) && namePattern.MatchString(name) && name != "." && name != ".."
}
