// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BodyIdentity identifies an event by the signed body of its delivery (docs/adr/0020).
type BodyIdentity struct {
	// Key is a digest of the body and of the service's name of the event.
	Key string
	// At is when the event happened, as the body says, to the second.
	At metav1.Time
}

// EventName returns the name of the GitEvent of a delivery, the same on every replica and for every
// redelivery: the kind (GitEventSpec.Kind; "_" becomes "-") and half of the SHA-256 of provider,
// host and the key that all redeliveries share.
func EventName(kind, provider, host, key string) string {
	// None of the three can contain NUL, so two different triples never give the same text.
	sum := sha256.Sum256([]byte(provider + "\x00" + strings.ToLower(host) + "\x00" + key))
	return strings.ReplaceAll(kind, "_", "-") + "-" + hex.EncodeToString(sum[:])[:32]
}

// EventName returns the name of the event's GitEvent, derived from the body of its delivery if
// possible, else from the delivery's key.
func (s *GitEventSpec) EventName() string {
	if s.Body == nil {
		return EventName(s.Kind(), s.Provider, s.Host, s.DeliveryKey)
	}
	return EventName(s.Kind(), s.Provider, s.Host, s.Body.Key)
}

// Happening returns a digest of what happened: the kind of the event, its project, refs and
// commits, the numbers of the pull request and comment, and what a request to /incoming asks for. A
// redelivery has the same digest, also from GitLab, which removes the e-mail addresses from a
// redelivered body.
func (s *GitEventSpec) Happening() string {
	var pull, comment int64
	if s.PullRequest != nil {
		pull = s.PullRequest.Number
	}
	if s.Comment != nil {
		comment = s.Comment.ID
	}
	what := fmt.Appendf(nil, "%q %q %q %d %q %q %q %q %q %d %d",
		s.Trigger, s.EventType, s.Action, s.Project.ID, s.Project.URL, s.SHA, s.Before, s.BaseRef, s.HeadRef, pull, comment)
	if s.Incoming != nil {
		what = fmt.Appendf(what, " %q %q", s.Incoming.Pipeline, s.Incoming.Params) // sorted by name
	}
	sum := sha256.Sum256(what)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Subject returns the label value of what the event belongs to: a pull request, or the commit of a
// push. It includes the Repository's Origin. So a Repository that was deleted and created again
// finds its earlier events, and no namespace finds those of another one.
func (s *GitEventSpec) Subject() string { return s.subjectIn(s.Repository.Origin()) }

// Subjects returns the label values of all events with the same subject, separated by commas:
// Subject, and the value that the previous version wrote, with the UID of the Repository.
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

// Origin returns the namespace and canonical URL. It is the same for all Repository objects of a
// namespace with the same URL, one after the other, although the UID changes when a Repository is
// created again, and the name when it is renamed.
func (r *RepositoryReference) Origin() string {
	url := r.URL
	if canonical, err := CanonicalURL(url); err == nil {
		url = canonical
	}
	return r.Namespace + " " + url
}

// ReopenedName returns the name of the n-th GitEvent of a delivery after the first: the earlier
// ones ended without runs, and the service sent the delivery again. Other names end in hexadecimal
// digits, which contain no "r".
func ReopenedName(name string, n int) string { return fmt.Sprintf("%s-r%d", name, n) }

// Reopened reports whether the event with this name is from a redelivery.
func Reopened(name string) bool {
	last := strings.LastIndexByte(name, '-')
	return last >= 0 && strings.HasPrefix(name[last:], "-r")
}

// Kind is what people call the event: its Trigger, "comment", "rerun" or "incoming".
func (s *GitEventSpec) Kind() string {
	switch {
	case s.Comment != nil:
		return "comment"
	case s.Rerun != nil:
		return "rerun"
	case s.Incoming != nil:
		return EventIncoming
	}
	return string(s.Trigger)
}
