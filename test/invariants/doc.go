// SPDX-License-Identifier: Apache-2.0

// Package invariants says whether I-1 to I-5, I-7 and I-8 of docs/codes.md hold of what was seen in
// a cluster and at a Git service. It reads both services in one language, that of check runs.
package invariants

import (
	"strings"
	"time"
)

// Delivery is one attempt to deliver.
type Delivery struct {
	// Key is what all copies of a delivery have in common.
	Key string
	// Code is the HTTP status; 0 when there was no answer.
	Code int
	// At is when it was answered, or given up.
	At   time.Time
	Took time.Duration
}

// Check is a check run of GitHub, or a commit status of GitLab in GitHub's words. GitLab keeps one
// line of 255 characters: it is the Title, and Summary and Text too.
type Check struct {
	ID string // as Plumbline records it
	// Number is higher in newer ones.
	Number                           int64
	Name, ExternalID                 string
	Status, Conclusion               string
	Title, Summary, Text, DetailsURL string
	// Replaced: another one of the same run took its place, and people see that it does not count.
	Replaced bool
	// Line: the service keeps no more than the Title.
	Line bool
}

// Tells reports whether a user can read the words in the check. GitLab has space for their start,
// and for none where nothing failed: the PipelineRun and the GitEvent have all of them.
func (c Check) Tells(words string) bool {
	all := c.Title + "\n" + c.Summary + "\n" + c.Text
	if strings.Contains(all, words) || !c.Line {
		return strings.Contains(all, words)
	}
	if c.Conclusion != "failure" {
		return c.Title != ""
	}
	const enough = 10 // characters of the words, before the cut
	start, _, cut := strings.Cut(c.Title, "…")
	for at := range start {
		if cut && len(start)-at >= enough && strings.HasPrefix(words, start[at:]) {
			return true
		}
	}
	return false
}

// Write is one mutating call to a Git service, in the words of Check.
type Write struct {
	N    int
	At   time.Time // when it arrived
	SHA  string    // "" if it is about no check
	Name string
	// Repository is where: owner/name, or the full path of a project.
	Repository string
	// Check is the check that it changed, "" if none: each has one name here.
	Check                                 string
	ExternalID, Status, Conclusion, Title string
	Body                                  map[string]any
	Applied                               bool // the service's state changed, whatever the client was told
	Creates                               bool // it asked for a check that is not there
}

// Violation is one invariant that does not hold.
type Violation struct {
	// Invariant is its id in docs/codes.md, e.g. "I-3".
	Invariant string
	// Subject is the delivery key, the GitEvent or the PipelineRun that it does not hold of.
	Subject string
	Message string
}

func (v Violation) Error() string { return v.Invariant + ": " + v.Message }
