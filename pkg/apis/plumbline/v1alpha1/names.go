// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BodyIdentity is what tells an event from every other one by the signed body of its delivery
// (docs/adr/0020).
type BodyIdentity struct {
	// Key is a digest of the body and of the service's name of the event.
	Key string
	// At is when the event happened, as the body says, to the second.
	At metav1.Time
}

// EventName is the name of the GitEvent of a delivery, the same on every replica and for every copy
// of the delivery: the kind (GitEventSpec.Kind; "_" becomes "-") and half of the SHA-256 of
// provider, host and the key that all copies have in common. Nothing else enters the hash, so a
// redelivery meets the object of the first one.
func EventName(kind, provider, host, key string) string {
	// NUL cannot occur in any of the three: two different triples never give the same text.
	sum := sha256.Sum256([]byte(provider + "\x00" + strings.ToLower(host) + "\x00" + key))
	return strings.ReplaceAll(kind, "_", "-") + "-" + hex.EncodeToString(sum[:])[:32]
}

// EventName is the name of the event's GitEvent: by the body of its delivery where that can be,
// else by the delivery's key.
func (s *GitEventSpec) EventName() string {
	if s.Body == nil {
		return EventName(s.Kind(), s.Provider, s.Host, s.DeliveryKey)
	}
	return EventName(s.Kind(), s.Provider, s.Host, s.Body.Key)
}

// Happening is a digest of what happened: the kind of the event and its project, refs and commits,
// and the numbers of the pull request and of the comment. All copies of a delivery have it in
// common, also what GitLab sends again, whose body has no e-mail addresses any more.
func (s *GitEventSpec) Happening() string {
	var pull, comment int64
	if s.PullRequest != nil {
		pull = s.PullRequest.Number
	}
	if s.Comment != nil {
		comment = s.Comment.ID
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d %q %q %q %q %q %d %d",
		s.Trigger, s.EventType, s.Action, s.Project.ID, s.Project.URL, s.SHA, s.Before, s.BaseRef, s.HeadRef, pull, comment))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Subject is what the event is about, as the value of a label: a pull request, for a push the
// commit. The Repository's Origin is in it, so that a Repository that was deleted and created again
// finds what was recorded before, and nobody finds what another namespace has recorded.
func (s *GitEventSpec) Subject() string { return s.subjectIn(s.Repository.Origin()) }

// Subjects are the values of the label on all events about the same as this one, separated by
// commas: Subject, and what the version before wrote in its place, with the UID of the Repository.
func (s *GitEventSpec) Subjects() string {
	return s.Subject() + "," + s.subjectIn(string(s.Repository.UID))
}

func (s *GitEventSpec) subjectIn(repository string) string {
	about := "commit " + s.SHA
	if s.PullRequest != nil {
		about = fmt.Sprintf("pull %d", s.PullRequest.Number)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s", repository, about))
	return hex.EncodeToString(sum[:])[:32]
}

// Origin is the same for all Repository objects of a namespace with the same URL, one after the
// other: its namespace and canonical URL. A Repository that is deleted and created again has
// another UID, and when it is renamed another name.
func (r *RepositoryReference) Origin() string {
	url := r.URL
	if canonical, err := CanonicalURL(url); err == nil {
		url = canonical
	}
	return r.Namespace + " " + url
}

// ReopenedName is the name of the n-th event that a delivery becomes after the first, when the ones
// before it ended without runs and the service sends it again. Names of events end in hexadecimal
// digits, so that "-r" tells.
func ReopenedName(name string, n int) string { return fmt.Sprintf("%s-r%d", name, n) }

// Reopened reports whether somebody had the service send the delivery of an event again.
func Reopened(name string) bool {
	last := strings.LastIndexByte(name, '-')
	return last >= 0 && strings.HasPrefix(name[last:], "-r")
}

// Kind is what people call the event: its Trigger, "comment" or "rerun".
func (s *GitEventSpec) Kind() string {
	switch {
	case s.Comment != nil:
		return "comment"
	case s.Rerun != nil:
		return "rerun"
	}
	return string(s.Trigger)
}
