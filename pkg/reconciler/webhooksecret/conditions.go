// SPDX-License-Identifier: Apache-2.0

package webhooksecret

import (
	"context"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"knative.dev/pkg/apis"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	typed "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/pipelinesascode/v1alpha1"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// problem is the reason why a secret is not copied, for the users of its Repositories.
type problem struct{ reason, message string }

const reasonCopied = "Copied"

// conditions write the condition WebhookSecret.
type conditions struct {
	cached   listers.RepositoryLister
	live     typed.RepositoriesGetter
	recorder record.EventRecorder
	logger   *zap.SugaredLogger
	// namespace is Plumbline's own.
	namespace string
}

// set writes the problem, nil for none, into the condition WebhookSecret of Repositories. A
// Repository that never had one gets no condition. Each write takes one from left. It returns false
// if it has to be repeated.
func (c conditions) set(ctx context.Context, repositories []types.NamespacedName, found *problem, left *int) bool {
	done := true
	for _, name := range repositories {
		cached, err := c.cached.Repositories(name.Namespace).Get(name.Name)
		if err != nil || c.current(cached, found) {
			continue // deleted, or up to date
		}
		if *left <= 0 {
			return false
		}
		*left--
		if err := c.write(ctx, name, found); err != nil {
			c.logger.Warnw(
				"Telling a Repository of its webhook secret failed",
				"repository",
				name.String(),
				"error",
				err.Error(),
			)
			done = false
		}
	}
	return done
}

// current reports whether a Repository needs no write: it says so already, or another installation
// writes the condition.
func (c conditions) current(repository *pacv1alpha1.Repository, found *problem) bool {
	if repository.By(c.namespace).Leaves(pacv1alpha1.RepositoryWebhookSecret) {
		return true
	}
	is := repository.Status.GetCondition(pacv1alpha1.RepositoryWebhookSecret)
	if found == nil {
		return is == nil || is.IsTrue()
	}
	return sameProblem(is, found)
}

func sameProblem(is *apis.Condition, found *problem) bool {
	return is != nil && is.IsFalse() && is.Reason == found.reason && is.Message == found.message
}

func (c conditions) write(ctx context.Context, name types.NamespacedName, found *problem) error {
	repository, err := c.live.Repositories(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if fault.Gone(err) {
		return nil
	}
	if err != nil || c.current(repository, found) {
		return err
	}
	was := repository.Status.GetCondition(pacv1alpha1.RepositoryWebhookSecret)
	kind, reason, message := corev1.EventTypeNormal, reasonCopied, "The webhook's secret is known to the receivers."
	if found != nil {
		kind, reason, message = corev1.EventTypeWarning, found.reason, found.message
		repository.By(c.namespace).MarkFalse(pacv1alpha1.RepositoryWebhookSecret, reason, message)
	} else {
		repository.By(c.namespace).MarkTrue(pacv1alpha1.RepositoryWebhookSecret, reason, message)
	}
	if _, err := c.live.Repositories(name.Namespace).UpdateStatus(ctx, repository, metav1.UpdateOptions{}); err != nil {
		return err // a conflict, too: the next pass reads it again
	}
	if was == nil || was.Reason != reason {
		c.recorder.Event(repository, kind, reason, message)
	}
	return nil
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
		} else if !p.often(f.id) {
			all = false
			p.again(f)
		}
	}
	return all
}

// again makes a secret due as it was before this pass.
func (p *pass) again(f found) {
	if delete(p.next.read, f.id); !f.at.IsZero() {
		p.next.read[f.id] = f.at
	}
	if f.requested {
		p.next.requested[f.id] = true
	}
}

// often counts a failure. It reports whether there were so many that the secret is retried with all
// others only.
func (p *pass) often(id string) bool {
	p.next.failed[id] = min(maxFailures, p.next.failed[id]+1)
	return p.next.failed[id] == maxFailures
}
