// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// message is one check that is sent.
type message struct {
	head     git.Head
	check    status.Check
	accepted v1alpha1.Check // the record of what the Git service has accepted of it before
	post     string         // names the check among those of all events
	late     bool           // a post that takes effect late shows
}

// sender is the Git service's part (provider.Client).
type sender interface {
	Put(ctx context.Context, head git.Head, id string, check status.Check, sole bool) (string, error)
}

// send sends a message and returns the record of the check after that. With an error, only the ID
// in it may be new.
func (s *Step) send(ctx context.Context, service sender, m message) (v1alpha1.Check, error) {
	next := m.accepted
	sole := s.posts.Take(m.post, next.ID) && !m.check.Shared && next.RecheckAt == nil &&
		(m.check.Conclusion != "" || !next.Concluded)
	id, err := service.Put(ctx, m.head, next.ID, m.check, sole)
	if id != "" && id != next.ID {
		next.ID, next.Annotated = id, false // also if only a duplicate could not be closed
	}
	if err != nil {
		return next, fmt.Errorf("reporting %q: %w", m.check.Name, err)
	}
	if sole && m.check.Conclusion == "" { // little follows after a conclusion, and 10,000 are remembered
		s.posts.Remember(m.post, id)
	}
	digest := status.Digest(m.check)
	next.Annotated = next.Annotated && next.Accepted == digest
	next.Accepted, next.Concluded = digest, m.check.Conclusion != ""
	return next, nil
}

// needsWrite reports whether the status must be written before a check is sent. Its intent must be
// stored, so that only one of two processes that both believe to lead sends it. A conclusion is
// sent only as it is stored. That a run was created is no conclusion: it is stored together with
// the answer to its report, unless that takes long.
func needsWrite(check *status.Check, accepted, stored *v1alpha1.Check) bool {
	return check.Conclusion != "" || stored == nil || !equality.Semantic.DeepEqual(stored, accepted)
}

// rules say which checks must be looked up once more, because a post may take effect late.
type rules struct {
	reopens bool // at this Git service, a post that takes effect late reopens a check
	pending bool // the event waits for approval
}

// lateMatters reports whether a post of this check that takes effect after another one shows. The
// first post would show as a second check. Where a late post reopens a check every post shows,
// except a conclusion.
func (r rules) lateMatters(check *v1alpha1.Check) bool {
	return check.ID == "" || r.reopens && !check.Concluded
}

// final reports whether a check is not written again without a new reason: it has a conclusion, or
// asks for an approval. A late duplicate of the latter can be taken back only where a late post
// also reopens a check. Elsewhere it says the same.
func (r rules) final(check *v1alpha1.Check) bool {
	return check.Concluded || r.pending && r.reopens
}

// due reports whether a final check must be looked up now although it is accepted.
func (r rules) due(desired status.Check, accepted *v1alpha1.Check, now time.Time) bool {
	return accepted != nil && r.final(accepted) && accepted.RecheckAt != nil &&
		accepted.Accepted == status.Digest(desired) && !now.Before(accepted.RecheckAt.Time)
}

// accepted returns the record of a check that was just accepted. If no duplicate could be under way
// any more, Put has looked for duplicates, and no further look-up is needed.
func (r rules) accepted(check v1alpha1.Check, now time.Time) v1alpha1.Check {
	if r.final(&check) && check.RecheckAt != nil && !now.Before(check.RecheckAt.Time) {
		check.RecheckAt = nil
	}
	return check
}

// next returns the first final check that must be looked up later than began, nil if there is none.
func (r rules) next(checks []v1alpha1.Check, began time.Time) *v1alpha1.Check {
	for i := range checks {
		if check := &checks[i]; r.final(check) && check.RecheckAt != nil && check.RecheckAt.After(began) {
			return check
		}
	}
	return nil
}

func at(t time.Time) *metav1.Time {
	when := metav1.NewTime(t)
	return &when
}
