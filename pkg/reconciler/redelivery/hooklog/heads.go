// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
	"github.com/plumbline-ci/plumbline/pkg/store/repositories"
)

const (
	// deliveryWithin is how long after a head has moved its delivery may come: GitLab delivers from
	// a queue.
	deliveryWithin = 2 * time.Minute
	// compareEvery is the least time between two comparisons.
	compareEvery = 15 * time.Second
	// maxNamed is how many heads the condition names.
	maxNamed = 10
	// samplePages of samplePage events are read to see how old the oldest ones are.
	samplePages, samplePage = 5, 100
	// reasonNotRecorded is of the condition Webhook while heads have no record.
	reasonNotRecorded = "HeadsNotRecorded"
)

// heads is the state of the comparison of a project's heads with the GitEvents.
type heads struct {
	// wanted is true while deliveries may be lost: from the moment GitLab may have dropped some
	// until a comparison finds no head without a record.
	wanted bool
	// next is when the next comparison may be made.
	next time.Time
}

// compare reports on a webhook that GitLab calls. What GitLab dropped while it had paused the
// webhook is in no log, so compare looks for it among the project's heads. It returns how long the
// next read may wait.
func (s *source) compare(ctx context.Context, m *memory, ours []provider.Hook, v view) (time.Duration, error) {
	now := s.clock.Now()
	is := v.target.repository.Status.GetCondition(pacv1alpha1.RepositoryWebhook)
	named := is != nil && is.Reason == reasonNotRecorded
	if is != nil && is.Status == corev1.ConditionFalse {
		m.heads.wanted = true // another process may have said so
	}
	if !m.heads.wanted {
		return redelivery.ReadEvery, s.report(ctx, v.target, called())
	}
	if len(m.hooks.missed()) > 0 || now.Before(m.heads.next) { // resends will be recorded
		next := redelivery.ReadEvery
		if len(m.hooks.missed()) == 0 {
			next = min(next, m.heads.next.Sub(now))
		}
		if named {
			return next, nil // the condition stays until the next comparison
		}
		return next, s.report(ctx, v.target, called())
	}
	missing, next, err := s.notRecorded(ctx, ours, v)
	if err != nil { // resends go on meanwhile
		s.logger.Infow("comparing heads with GitEvents failed", "repository", v.target.owner.String(), "error", err.Error())
		m.heads.next = now.Add(redelivery.ReadEvery)
		return redelivery.ReadEvery, nil
	}
	m.heads = heads{wanted: len(missing) > 0 || next < redelivery.ReadEvery, next: now.Add(next)}
	if len(missing) > 0 {
		return next, s.report(ctx, v.target, headsNotRecorded(missing))
	}
	return next, s.report(ctx, v.target, called())
}

// notRecorded returns the heads without a GitEvent, and how long the next comparison may wait. It
// leaves out heads that moved before the Repository was created or its URL claimed, or so long ago
// that the GitEvent may be deleted. A head that moved just now is compared again soon.
func (s *source) notRecorded(
	ctx context.Context, ours []provider.Hook, v view,
) (missing []provider.Head, next time.Duration, err error) {
	now, next := s.clock.Now(), redelivery.ReadEvery
	there := redelivery.Latest(v.target.repository.CreationTimestamp.Time, v.target.since)
	since := redelivery.Latest(now.Add(-s.settings().MaxWait()), there)
	all, err := v.log.Heads(ctx, since)
	if err != nil {
		return nil, 0, err
	}
	for _, head := range all {
		if !covers(ours, head) {
			continue
		}
		recorded, err := s.recorded(ctx, v.target, head)
		if err != nil {
			return nil, 0, err
		}
		if recorded {
			continue
		}
		if head.Pull != 0 {
			if head.At, err = v.log.Moved(ctx, head.Pull); err != nil {
				return nil, 0, err
			}
		}
		if head.At.Before(since) {
			continue // its record may be gone
		}
		if left := head.At.Add(deliveryWithin).Sub(now); left > 0 {
			next = min(next, left)
			continue
		}
		missing = append(missing, head)
	}
	if missing, err = s.withoutEvicted(ctx, missing); err != nil {
		return nil, 0, err
	}
	slices.SortFunc(missing, func(a, b provider.Head) int { return cmp.Compare(a.Pull, b.Pull) })
	return missing, max(next, compareEvery), nil
}

// covers reports whether GitLab calls one of the webhooks when such a head moves.
func covers(hooks []provider.Hook, head provider.Head) bool {
	return slices.ContainsFunc(hooks, func(h provider.Hook) bool {
		return head.Pull == 0 && h.Pushes || head.Pull != 0 && h.Pulls
	})
}

// recorded reports whether there is a GitEvent of the head, settled or not: a push to the branch,
// or one of the pull request that has run or would have run that commit.
func (s *source) recorded(ctx context.Context, t *target, head provider.Head) (bool, error) {
	about := v1alpha1.GitEventSpec{Repository: v1alpha1.RepositoryReference{
		Namespace: t.repository.Namespace, UID: t.repository.UID, URL: t.repository.Spec.URL,
	}, SHA: head.SHA}
	if head.Pull != 0 {
		about.PullRequest = &v1alpha1.PullRequest{Number: head.Pull}
	}
	found := false
	err := history.Each(ctx, s.events, about.Subjects(), func(event *v1alpha1.GitEvent) bool {
		here := head.Pull != 0 || event.Spec.BaseRef == "refs/heads/"+head.Branch
		found = here && history.Record{Event: event}.SHA() == head.SHA
		return !found
	})
	return found, err
}

// withoutEvicted leaves out the heads whose GitEvents may have been evicted: the sweep deletes the
// oldest settled events above settled-cap, and its tombstones do not name a commit.
func (s *source) withoutEvicted(ctx context.Context, heads []provider.Head) ([]provider.Head, error) {
	if len(heads) == 0 {
		return nil, nil
	}
	since, err := s.keptSince(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(heads, func(head provider.Head) bool { return head.At.Before(since) }), nil
}

// keptSince returns since when the GitEvents are complete: zero if there are far fewer than
// settled-cap, else the oldest end of a settled one. The creation of an event says nothing: one
// that waited for days is older than evicted ones. An unreported one says nothing either, because
// the sweep spares it. Names are kinds and digests, so a sample of them has events of all ages.
func (s *source) keptSince(ctx context.Context) (time.Time, error) {
	var oldest time.Time
	o, read := metav1.ListOptions{Limit: samplePage}, 0
	for range samplePages {
		page, err := s.events.List(ctx, o)
		if err != nil {
			return time.Time{}, fault.FromKube(fault.VerbRead, fmt.Errorf("listing GitEvents: %w", err))
		}
		read += len(page.Items)
		counted := page.Continue == "" || page.RemainingItemCount != nil
		if counted && read+int(ptr.Deref(page.RemainingItemCount, 0)) < s.settings().SettledCap*9/10 {
			return time.Time{}, nil
		}
		for i := range page.Items {
			event := &page.Items[i]
			if end := event.SettledTime(); event.Settled() && !event.Status.Unreported &&
				(oldest.IsZero() || end.Before(oldest)) {
				oldest = end
			}
		}
		if o.Continue = page.Continue; o.Continue == "" {
			break
		}
	}
	return oldest, nil
}

// headsNotRecorded names some heads.
func headsNotRecorded(missing []provider.Head) repositories.State {
	var named []string
	for _, head := range missing[:min(len(missing), maxNamed)] {
		what := "branch " + head.Branch
		if head.Pull != 0 {
			what = fmt.Sprintf("merge request !%d", head.Pull)
		}
		named = append(named, fmt.Sprintf("%s at %.8s", what, head.SHA))
	}
	if more := len(missing) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	return state(
		corev1.ConditionFalse,
		reasonNotRecorded,
		"GitLab calls the webhook again, but never sent these, so nothing has run for them: %s. "+
			"Push to them again, or comment /test on a merge request.",
		strings.Join(named, ", "),
	)
}
