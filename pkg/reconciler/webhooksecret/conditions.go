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

// problem is why a secret is not copied, for whoever named it.
type problem struct{ reason, message string }

const reasonCopied = "Copied"

// conditions tell Repositories what became of their webhook secrets.
type conditions struct {
	cached   listers.RepositoryLister
	live     typed.RepositoriesGetter
	recorder record.EventRecorder
	logger   *zap.SugaredLogger
	// namespace is Plumbline's own.
	namespace string
}

// set makes the condition WebhookSecret of Repositories tell the problem, nil for none.
// Repositories that never had one have no such condition. It is false when it has to be tried
// again. Each Repository that does not say so already takes from room.
func (c conditions) set(ctx context.Context, repositories []types.NamespacedName, found *problem, room *int) bool {
	done := true
	for _, name := range repositories {
		cached, err := c.cached.Repositories(name.Namespace).Get(name.Name)
		if err != nil || c.told(cached, found) {
			continue // deleted: nobody is to be told
		}
		if *room <= 0 {
			return false
		}
		*room--
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

// told reports whether a Repository says so already, or has to say something else.
func (c conditions) told(repository *pacv1alpha1.Repository, found *problem) bool {
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
	if err != nil || c.told(repository, found) {
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
		return err // a conflict, too: the next look reads it again
	}
	if was == nil || was.Reason != reason {
		c.recorder.Event(repository, kind, reason, message)
	}
	return nil
}

// found is what became of a secret that was read in this pass.
type found struct {
	id      string
	problem *problem // nil for none
	// at is when it was read before, and asked whether that was asked for.
	at    time.Time
	asked bool
}

// tell tells Repositories what was found, maxTold at most; it is false when some are left. The
// copies do not wait for it: one Secret may be named by thousands of Repositories.
func (p *pass) tell(ctx context.Context) bool {
	all, room := true, maxTold
	for _, f := range p.found {
		if p.conditions.set(ctx, p.wanted[f.id].by, f.problem, &room) {
			delete(p.next.failed, f.id)
		} else if !p.often(f.id) {
			all = false
			p.again(f)
		}
	}
	return all
}

// again has a secret read again as it was to be before this pass.
func (p *pass) again(f found) {
	if delete(p.next.read, f.id); !f.at.IsZero() {
		p.next.read[f.id] = f.at
	}
	if f.asked {
		p.next.asked[f.id] = true
	}
}

// often counts a failure, and reports whether there were so many that the next try is not any
// sooner than everything else's.
func (p *pass) often(id string) bool {
	p.next.failed[id] = min(maxFailures, p.next.failed[id]+1)
	return p.next.failed[id] == maxFailures
}
