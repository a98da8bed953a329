// SPDX-License-Identifier: Apache-2.0

package webhooksecret

import (
	"context"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/repositories"
)

// problem is the reason why a secret is not copied, for the users of its Repositories.
type problem struct{ reason, message string }

const reasonCopied = "Copied"

// conditions write the condition WebhookSecret.
type conditions struct {
	repositories.Condition

	cached listers.RepositoryLister
	logger *zap.SugaredLogger
}

// set writes the problem, nil for none, into the condition WebhookSecret of Repositories. Each
// write takes one from left. It returns false if it has to be repeated.
func (c conditions) set(ctx context.Context, all []types.NamespacedName, found *problem, left *int) bool {
	state := repositories.State{
		Status:  corev1.ConditionTrue,
		Reason:  reasonCopied,
		Message: "The webhook's secret is known to the receivers.",
	}
	if found != nil {
		state = repositories.State{Status: corev1.ConditionFalse, Reason: found.reason, Message: found.message}
	}
	done := true
	for _, name := range all {
		cached, err := c.cached.Repositories(name.Namespace).Get(name.Name)
		if err != nil || c.Current(cached, state) {
			continue // deleted, or up to date
		}
		if *left <= 0 {
			return false
		}
		*left--
		if err := c.Write(ctx, name, state); err != nil {
			c.logger.Warnw("Writing the condition WebhookSecret failed", "repository", name.String(), "error", err.Error())
			done = false
		}
	}
	return done
}

// found is the result for a secret that was read in this pass.
type found struct {
	id      string
	problem *problem // nil for none
	// at is when it was read before, and requested is set if a receiver requested that.
	at        time.Time
	requested bool
}

// report writes the conditions of what was found, maxConditions at most; it returns false if some
// are left. The copies do not wait for it: thousands of Repositories may name one Secret.
func (p *pass) report(ctx context.Context) bool {
	all, left := true, maxConditions
	for _, f := range p.found {
		if p.conditions.set(ctx, p.wanted[f.id].by, f.problem, &left) {
			delete(p.next.failed, f.id)
		} else if !p.countFailure(f.id) {
			all = false
			p.dueAsBefore(f)
		}
	}
	return all
}

// dueAsBefore makes a secret due as it was before this pass.
func (p *pass) dueAsBefore(f found) {
	if delete(p.next.read, f.id); !f.at.IsZero() {
		p.next.read[f.id] = f.at
	}
	if f.requested {
		p.next.requested[f.id] = true
	}
}

// countFailure counts a failure. It reports whether the limit is reached: then the secret is only
// retried together with all others.
func (p *pass) countFailure(id string) bool {
	p.next.failed[id] = min(maxFailures, p.next.failed[id]+1)
	return p.next.failed[id] == maxFailures
}
