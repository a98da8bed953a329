// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// ReasonTreeTruncated is the reason of a directory that the service does not list completely.
	ReasonTreeTruncated = "TreeTruncated"
	// ReasonNotComparable is the reason of two commits whose difference cannot be found out.
	ReasonNotComparable = "NotComparable"
)

// Differ implements History.Differ. root lists the root directory of a commit; a commit that the
// service does not have is a fault with reason CommitUnknown.
func Differ(earlier, later string, names []string, root func(sha string) ([]Entry, error)) ([]string, error) {
	now, err := listed(root, later)
	if err != nil {
		return nil, notComparable(err)
	}
	before, err := listed(root, earlier)
	if f := fault.Of(err); f != nil && f.Reason == fault.ReasonCommitUnknown {
		// It existed, so it was replaced and deleted.
		return nil, fault.Invalidf(ReasonNotComparable, "%s", f.Message)
	}
	if err != nil {
		return nil, notComparable(err)
	}
	var different []string
	for _, name := range names {
		if now[name] != before[name] {
			different = append(different, name)
		}
	}
	return different, nil
}

// listed returns the entries of a commit's root directory by name.
func listed(root func(sha string) ([]Entry, error), sha string) (map[string]Entry, error) {
	if err := CheckSHA(sha); err != nil {
		return nil, err
	}
	entries, err := root(sha)
	byName := map[string]Entry{}
	for _, e := range entries {
		byName[e.Name] = e
	}
	return byName, err
}

// notComparable returns an Invalid fault for an error that no retry changes. Other errors are
// retried.
func notComparable(err error) error {
	f := fault.Of(err)
	switch {
	case f.Reason == fault.ReasonPermissionMissing, f.Reason == ReasonTreeTruncated, errors.Is(err, ErrTooLarge):
		return fault.Invalidf(ReasonNotComparable, "%s", f.Message)
	}
	return err
}
