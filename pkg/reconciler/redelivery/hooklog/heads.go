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
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

const (
	// underWay is how long after a head has moved its delivery may come: GitLab delivers from a
	// queue.
	underWay = 2 * time.Minute
	// maxNamed is how many heads the condition names.
	maxNamed = 10
	// samplePages of samplePage events are read to see how old the oldest ones are.
	samplePages, samplePage = 5, 100
	// reasonNotRecorded is of the condition Webhook while heads have no record.
	reasonNotRecorded = "HeadsNotRecorded"
)

// heads is what a process knows of the comparison of a project's heads with the records.
type heads struct {
	// wanted is true from when deliveries may have been missed until a comparison has found none.
	wanted bool
	// next is when the next comparison may be made.
	next time.Time
}

// account tells what is known of a webhook that is called. What GitLab did not send, because it had
// paused the webhook, is in no log: the project's heads are compared with the records. It returns
// when to look again.
func (r *Reconciler) account(ctx context.Context, m *memory, ours []provider.Hook, v view) (time.Duration, error) {
	now := r.clock.Now()
	is := v.target.repository.Status.GetCondition(pacv1alpha1.RepositoryWebhook)
	named := is != nil && is.Reason == reasonNotRecorded
	if is != nil && is.Status == corev1.ConditionFalse {
		m.heads.wanted = true // also when another process has said so
	}
	if !m.heads.wanted {
		return lookEvery, r.tell(ctx, v.target, called())
	}
	if m.logs.missing() > 0 || now.Before(m.heads.next) { // what is sent again will be recorded
		next := lookEvery
		if m.logs.missing() == 0 {
			next = min(next, m.heads.next.Sub(now))
		}
		if named {
			return next, nil // and it stays so until the next comparison
		}
		return next, r.tell(ctx, v.target, called())
	}
	missing, next, err := r.notRecorded(ctx, ours, v)
	if err != nil { // what is missed goes on being sent again meanwhile
		r.logger.Infow(
			"comparing the heads of a project with the records failed",
			"repository",
			v.target.owner.String(),
			"error",
			err.Error(),
		)
		m.heads.next = now.Add(lookEvery)
		return lookEvery, nil
	}
	m.heads = heads{wanted: len(missing) > 0 || next < lookEvery, next: now.Add(next)}
	if len(missing) > 0 {
		return next, r.tell(ctx, v.target, notRecorded(missing))
	}
	return next, r.tell(ctx, v.target, called())
}

// notRecorded returns the heads that no GitEvent is about although they have moved since the
// Repository is there and its URL claimed, and as long as events are kept; and when to compare
// again, because the delivery of another may be under way.
func (r *Reconciler) notRecorded(
	ctx context.Context,
	ours []provider.Hook,
	v view,
) (missing []provider.Head, next time.Duration, err error) {
	now, next := r.clock.Now(), lookEvery
	since := latest(now.Add(-r.settings().MaxWait()), latest(v.target.repository.CreationTimestamp.Time, v.target.since))
	all, err := v.from.Heads(ctx, since)
	if err != nil {
		return nil, 0, err
	}
	for _, head := range all {
		if !tells(ours, head) {
			continue
		}
		recorded, err := r.recorded(ctx, v.target, head)
		if err != nil {
			return nil, 0, err
		}
		if recorded {
			continue
		}
		if head.Pull != 0 {
			if head.At, err = v.from.Moved(ctx, head.Pull); err != nil {
				return nil, 0, err
			}
		}
		if head.At.Before(since) {
			continue // its record may be gone
		}
		if left := head.At.Add(underWay).Sub(now); left > 0 {
			next = min(next, left)
			continue
		}
		missing = append(missing, head)
	}
	if missing, err = r.withoutEvicted(ctx, missing); err != nil {
		return nil, 0, err
	}
	slices.SortFunc(missing, func(a, b provider.Head) int { return cmp.Compare(a.Pull, b.Pull) })
	return missing, max(next, settleEvery), nil
}

// tells reports whether one of the webhooks is called when such a head moves.
func tells(hooks []provider.Hook, head provider.Head) bool {
	return slices.ContainsFunc(hooks, func(h provider.Hook) bool {
		return head.Pull == 0 && h.Pushes || head.Pull != 0 && h.Pulls
	})
}

// recorded reports whether there is a GitEvent of the head, open or settled: a push to the branch,
// or one of the pull request that has run or would have run that commit.
func (r *Reconciler) recorded(ctx context.Context, t *target, head provider.Head) (bool, error) {
	about := v1alpha1.GitEventSpec{Repository: v1alpha1.RepositoryReference{
		Namespace: t.repository.Namespace, UID: t.repository.UID, URL: t.repository.Spec.URL,
	}, SHA: head.SHA}
	if head.Pull != 0 {
		about.PullRequest = &v1alpha1.PullRequest{Number: head.Pull}
	}
	found := false
	err := history.Each(ctx, r.events, about.Subjects(), func(event *v1alpha1.GitEvent) bool {
		here := head.Pull != 0 || event.Spec.BaseRef == "refs/heads/"+head.Branch
		found = here && history.Record{Event: event}.SHA() == head.SHA
		return !found
	})
	return found, err
}

// withoutEvicted leaves out the heads whose records may have been evicted: the sweep deletes the
// oldest settled events above settled-cap, and what it remembers of them does not say what they
// were about.
func (r *Reconciler) withoutEvicted(ctx context.Context, heads []provider.Head) ([]provider.Head, error) {
	if len(heads) == 0 {
		return nil, nil
	}
	since, err := r.keptSince(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(heads, func(head provider.Head) bool { return head.At.Before(since) }), nil
}

// keptSince returns since when events are kept: since the oldest end of a settled one, if there are
// nearly as many as settled-cap or more; else zero. One that has waited for days was created long
// before those that were evicted, so that its creation tells nothing; nor does one that is spared
// because it is unreported. Names are kinds and digests, so the first events are as old as others.
func (r *Reconciler) keptSince(ctx context.Context) (time.Time, error) {
	var oldest time.Time
	o, read := metav1.ListOptions{Limit: samplePage}, 0
	for range samplePages {
		page, err := r.events.List(ctx, o)
		if err != nil {
			return time.Time{}, fault.FromKube(fault.VerbRead, fmt.Errorf("listing GitEvents: %w", err))
		}
		read += len(page.Items)
		counted := page.Continue == "" || page.RemainingItemCount != nil
		if counted && read+int(ptr.Deref(page.RemainingItemCount, 0)) < r.settings().SettledCap*9/10 {
			return time.Time{}, nil
		}
		for i := range page.Items {
			event := &page.Items[i]
			if end := event.EndedAt(); event.Settled() && !event.Status.Unreported && (oldest.IsZero() || end.Before(oldest)) {
				oldest = end
			}
		}
		if o.Continue = page.Continue; o.Continue == "" {
			break
		}
	}
	return oldest, nil
}

// notRecorded is the verdict that names some heads.
func notRecorded(missing []provider.Head) verdict {
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
	return verdict{
		corev1.ConditionFalse,
		reasonNotRecorded,
		fmt.Sprintf("GitLab calls the webhook again, but never sent these, so nothing has run for them: %s. "+
			"Push to them again; on a merge request a comment /test does it, too.", strings.Join(named, ", ")),
	}
}
