// SPDX-License-Identifier: Apache-2.0

// Package approval decides whether a comment approves one commit of another user's pull request.
// The author of the comment has read a commit. But the author of the pull request may push another
// one at any time, and deliveries arrive in any order. So a commit runs only if it is certain that
// it was the head when the comment was written, and that it still is (S21).
package approval

import (
	"fmt"
	"strings"
	"time"
)

// MinDigits is how many digits of a commit's id an approval must have at least (S21).
const MinDigits = 10

// Head records that a commit was the head of a pull request at a time.
type Head struct {
	SHA string
	// Before is the commit that SHA replaced at that time; "" if nothing was pushed then, or if it
	// is not known.
	Before string
	// At is the time by the Git service's clock, in whole seconds.
	At time.Time
	// Received is when the delivery that says so was received, by our clock; zero if it is from the
	// Git service's own list of heads.
	Received time.Time
}

// Comment is a comment that requests runs.
type Comment struct {
	// At is when it was written, by the Git service's clock, in whole seconds; zero if that is not
	// known.
	At time.Time
	// Received is when its delivery was received, by our clock.
	Received time.Time
	// SHA is the commit that it names: hexadecimal digits, upper or lower case; "" if it names
	// none.
	SHA string
}

// Decide reports whether a comment approves the pull request's current head. known has the known
// heads, in any order. If it does not, why is a sentence for people, which names the head.
//
// It approves only a commit that was the head before the comment was written, and that is the last
// of all heads known from before the comment.
func Decide(c Comment, head string, known []Head) (approved bool, why string) {
	if c.SHA != "" {
		if why := WrongCommit(c.SHA, head); why != "" {
			return false, why
		}
		if len(known) == 0 && len(c.SHA) == len(head) { // a full id names the commit for certain
			return true, ""
		}
	}
	if c.At.IsZero() {
		return false, fmt.Sprintf(
			"The delivery of the comment does not say when it was written. The head of the pull request is %s: write the command again.",
			head,
		)
	}
	return wasHead(c, head, known)
}

// WrongCommit returns why the commit that a comment names is not the head, "" if it is.
func WrongCommit(sha, head string) (why string) {
	switch {
	case len(sha) < MinDigits:
		return fmt.Sprintf("A commit needs at least %d digits, and %q has %d. The head of the pull request is %s.", MinDigits,
			sha, len(sha), head)
	case !strings.HasPrefix(head, strings.ToLower(sha)):
		return fmt.Sprintf("The comment names commit %s, and the head of the pull request is %s.", sha, head)
	}
	return ""
}

// wasHead reports whether the commit was the head when the comment was written, and has been since.
// Two heads in the same second have no order: then neither is approved.
func wasHead(c Comment, head string, known []Head) (approved bool, why string) {
	unknown := fmt.Sprintf(
		"Plumbline cannot tell whether %s was already the newest commit of the pull request when the comment was written. "+
			"Review it, and write the command again",
		head,
	)
	if c.SHA == "" {
		unknown += ", or name the commit: /ok-to-test " + head
	}
	moved := fmt.Sprintf(
		"The head of the pull request was not %s when the comment was written, or has been another one since. "+
			"It is %s now: read the change and write the command again.",
		head,
		head,
	)
	received := newest(known, func(h Head) bool { return !h.Received.After(c.Received) })
	before := newest(known, func(h Head) bool { return h.At.Before(c.At) })
	switch {
	case len(received) == 0 || len(before) == 0:
		return false, unknown + "."
	case !received[0].At.Before(c.At), !all(received, head), !all(before, head):
		return false, moved
	}
	for _, h := range known {
		if since := !h.At.Before(c.At); since && (h.SHA != head || h.Before != "") {
			return false, moved
		}
	}
	return true, ""
}

// newest returns the last of the chosen heads by the Git service's clock. Several may have the same
// second.
func newest(known []Head, chosen func(Head) bool) (last []Head) {
	for _, h := range known {
		switch {
		case !chosen(h):
		case len(last) == 0 || h.At.After(last[0].At):
			last = []Head{h}
		case h.At.Equal(last[0].At):
			last = append(last, h)
		}
	}
	return last
}

// all reports whether all heads are the same commit.
func all(heads []Head, sha string) bool {
	for _, h := range heads {
		if h.SHA != sha {
			return false
		}
	}
	return true
}
