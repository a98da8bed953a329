// SPDX-License-Identifier: Apache-2.0

package provider

import "github.com/plumbline-ci/plumbline/pkg/fault"

// Other is what is there instead of a commit, "" if it is that one.
func Other(now, sha string) string {
	if now == sha {
		return ""
	}
	return now
}

// Commit is the commit that a service names in an answer. One that is none is a Transient fault.
func Commit(what, service, sha string) (string, error) {
	if !IsSHA(sha) {
		return "", fault.Transientf("BadAnswer", "%s: %s names no commit", what, service)
	}
	return sha, nil
}
