// SPDX-License-Identifier: Apache-2.0

// Package git has the values that a Git service returns about a repository. Code that uses them
// does not depend on the service.
package git

import (
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Lag is how long after a commit became known a Git service's answer may not include it. Its
// replicas lag up to 20 s; the rest is for differences between the clocks of our processes.
const Lag = 30 * time.Second

// Head is the complete revision an event is about.
type Head struct {
	// SHA is the commit to run and report on.
	SHA string
	// Commit is its title and web page.
	Commit v1alpha1.Commit
	// Project is the repository whose commits get the checks: the event's base repository.
	Project v1alpha1.Project
	// Ref is the branch or tag whose head SHA was: GitEventSpec.headRef.
	Ref string
	// PullRequest is the event's, nil for pushes. GitLab shows verdicts on forks in the fork, or in
	// the merge request.
	PullRequest *v1alpha1.PullRequest
}

// Version is a head that a pull request has had.
type Version struct {
	SHA string
	// Since is when it became the head, by the service's clock, to the second.
	Since time.Time
}

// File is one file of a revision.
type File struct {
	// Path is relative to the repository's root, with slashes.
	Path string
	Data []byte
}

// Changes are the files an event changed.
type Changes struct {
	Added, Modified, Deleted, Renamed []string
	// Truncated is true when the service did not list all of them.
	Truncated bool
}

// Pull is a pull or merge request that a commit is part of.
type Pull struct {
	Number int64
	// Open is false once it was merged or closed; Merged is true once it was merged.
	Open, Merged bool
	// SHA is its head. It may be another commit than the one that was asked for, and empty while
	// the service computes it.
	SHA string
	// BaseRef is the branch that it is to be merged into, HeadRef its own branch. Both are without
	// prefix.
	BaseRef, HeadRef string
	// HeadProjectID is the service's id of the repository that HeadRef is in, 0 when that was
	// deleted.
	HeadProjectID int64
}
