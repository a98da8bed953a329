// SPDX-License-Identifier: Apache-2.0

// Package approval decides whether a comment lets one commit of somebody else's pull request run.
// Whoever writes the comment has read a commit; the author of the pull request may push another one
// at any moment, and deliveries come in any order. A commit runs only if it is certain that it was
// the head when the comment was written, and still is (S21).
package approval

import (
	"fmt"
	"strings"
	"time"
)

// MinDigits is how many digits of a commit's id an approval has to name at least (S21).
const MinDigits = 10

// Head says that a commit was the head of a pull request at a moment.
type Head struct {
	SHA string
	// Before is the commit that SHA has replaced at that moment; "" if nothing was pushed then, or
	// if it is not known.
	Before string
	// At is the moment by the Git service's clock, to the second.
	At time.Time
	// Received is when the delivery that says so came, by our clock; zero if the Git service's own
	// list of heads says so.
	Received time.Time
}

// Comment is a comment that asks for runs.
type Comment struct {
	// At is when it was written, by the Git service's clock, to the second; zero if that is not
	// known.
	At time.Time
	// Received is when its delivery came, by our clock.
	Received time.Time
	// SHA is the commit that it names: hexadecimal digits in any case, "" if it names none.
	SHA string
}

// Decide reports whether a comment approves the head that the pull request has now, given the
// moments that are known, in any order. The sentence says why not, for people; it names the head.
//
// What is certain: a commit that this approves was the head before the comment was written, and of
// all heads that are known from before the comment it was the last.
func Decide(c Comment, head string, known []Head) (approved bool, why string) {
	if c.SHA != "" {
		if why := Misnamed(c.SHA, head); why != "" {
			return false, why
		}
		if len(known) == 0 && len(c.SHA) == len(head) { // nobody can be mistaken about a whole id
			return true, ""
		}
	}
	if c.At.IsZero() {
		return false, fmt.Sprintf(
			"The delivery of the comment does not say when it was written. The head of the pull request is %s: write the command again.",
			head,
		)
	}
	return proven(c, head, known)
}

// Misnamed says why the commit that a comment names is not the head, "" if it is.
func Misnamed(sha, head string) (why string) {
	switch {
	case len(sha) < MinDigits:
		return fmt.Sprintf(
			"A commit needs at least %d digits, and %q has %d. The head of the pull request is %s.",
			MinDigits,
			sha,
			len(sha),
			head,
		)
	case !strings.HasPrefix(head, strings.ToLower(sha)):
		return fmt.Sprintf("The comment names commit %s, and the head of the pull request is %s.", sha, head)
	}
	return ""
}

// proven reports whether the head was so when the comment was written, and since. Two commits that
// were heads in the same second cannot be put into an order: then none of them is approved.
func proven(c Comment, head string, known []Head) (approved bool, why string) {
	unknown := fmt.Sprintf(
		"Nothing that was received before the comment says that %s, the head of the pull request now, was its head by then. "+
			"Read the change and write the command again",
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
	received, before := newest(
		known,
		func(h Head) bool { return !h.Received.After(c.Received) },
	), newest(
		known,
		func(h Head) bool { return h.At.Before(c.At) },
	)
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

// newest returns those of the chosen moments that are the last, by the Git service's clock. Several
// have the same second.
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

// all reports whether the moments are all of one commit.
func all(heads []Head, sha string) bool {
	for _, h := range heads {
		if h.SHA != sha {
			return false
		}
	}
	return true
}
