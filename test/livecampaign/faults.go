// SPDX-License-Identifier: Apache-2.0

package livecampaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
	pkgfault "github.com/plumbline-ci/plumbline/pkg/fault"
)

// fault is one harmless thing that is done to an installation.
type fault interface {
	// prepare returns what will be done. It changes nothing. An error says why the fault cannot be
	// made here.
	prepare(ctx context.Context) (string, error)
	// inject makes the fault once and waits for the recovery. A Violation names what did not
	// recover in time.
	inject(ctx context.Context) error
}

// Names are those of the faults, in the order in which they are made.
func Names() []string { return []string{"policy", "secrets", "pods"} }

func (c *Campaign) fault(name string) fault {
	switch name {
	case "secrets":
		return &copies{Campaign: c}
	case "pods":
		return &pods{Campaign: c}
	}
	c.policy = c.newPolicy()
	return c.policy
}

// copies deletes the Secret with the copy of the canary's webhook secret. The controllers recreate
// it. Until then, receivers use the copy that they have in memory.
type copies struct {
	*Campaign
	id string
}

const (
	// appSecret and globalRepository are the names that the controllers use by default.
	appSecret        = "plumbline-github-app"
	globalRepository = "pipelines-as-code"
)

func (s *copies) prepare(ctx context.Context) (string, error) {
	repositories := s.plumbline.PipelinesascodeV1alpha1()
	canary, err := repositories.Repositories(s.Canary.Namespace).Get(ctx, s.Canary.Name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the canary Repository: %w", err)
	}
	global, err := repositories.Repositories(s.System).Get(ctx, globalRepository, metav1.GetOptions{})
	if pkgfault.Gone(err) {
		global, err = nil, nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the global Repository: %w", err)
	}
	service, err := pacv1alpha1.ServiceOf(canary, global)
	if err != nil {
		return "", err
	}
	s.id = webhooksecret.ID(
		cmp.Or(service.Webhook, pacv1alpha1.SecretKey{Namespace: s.System, Name: appSecret, Key: webhooksecret.AppKey}),
	)
	if _, err := s.whole(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf(
		"delete Secret %s/%s, a copy of webhook secrets that the controllers make again; receivers keep what they have until then",
		s.System,
		s.name(),
	), nil
}

func (s *copies) name() string { return webhooksecret.ShardName(webhooksecret.ShardOf(s.id)) }

// whole returns the UID of the Secret if it has what it should. Nothing of its values is kept.
func (s *copies) whole(ctx context.Context) (types.UID, error) {
	shard, err := s.kube.CoreV1().Secrets(s.System).Get(ctx, s.name(), metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading Secret %s/%s: %w", s.System, s.name(), err)
	}
	if _, found := webhooksecret.Copy(shard.Data, s.id); !found || !webhooksecret.Complete(shard) {
		return "", fmt.Errorf("the Secret %s/%s has no copy of the canary's webhook secret", s.System, s.name())
	}
	return shard.UID, nil
}

func (s *copies) inject(ctx context.Context) error {
	before, err := s.whole(ctx)
	if err != nil {
		return err
	}
	if err := s.kube.CoreV1().
		Secrets(s.System).
		Delete(ctx, s.name(), *metav1.NewPreconditionDeleteOptions(string(before))); err != nil {
		return fmt.Errorf("deleting Secret %s/%s: %w", s.System, s.name(), err)
	}
	s.say("secrets: Secret %s is deleted", s.name())
	return s.back(ctx, "secrets", "Secret "+s.name(), func(ctx context.Context) error {
		if after, err := s.whole(ctx); err != nil || after == before {
			return cmp.Or(err, errors.New("it is the one that was deleted"))
		}
		return nil
	})
}

// back waits until a deleted object exists again. It returns a Violation if that takes too long.
func (c *Campaign) back(ctx context.Context, promise, what string, there func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, c.Deadline)
	defer cancel()
	var last error
	err := wait.PollUntilContextCancel(limited, retryEvery, true, func(ctx context.Context) (bool, error) {
		if err := there(ctx); err == nil || ctx.Err() == nil {
			last = err
		}
		return last == nil, nil
	})
	if err == nil {
		c.say("%s: %s is back", promise, what)
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return Violation{Promise: promise, Message: fmt.Sprintf("%s is not back after %s: %v", what, c.Deadline, last)}
}

// pods evicts one pod of each Deployment after the other, as a node drain does. A
// PodDisruptionBudget may refuse an eviction.
type pods struct{ *Campaign }

func deployments() []string { return []string{"plumbline-receiver", "plumbline-controller"} }

func (p *pods) prepare(ctx context.Context) (string, error) {
	for _, name := range deployments() {
		if _, err := p.ready(ctx, name); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf(
		"evict one pod of each of the Deployments %q in namespace %s, one after the other, each when all pods are ready. Another pod takes over meanwhile, for every team",
		deployments(),
		p.System,
	), nil
}

func (p *pods) inject(ctx context.Context) error {
	for _, name := range deployments() {
		all, err := p.ready(ctx, name)
		if err != nil {
			return err
		}
		oldest := slices.MinFunc(
			all,
			func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) },
		)
		eviction := &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{
				Name:      oldest.Name,
				Namespace: p.System,
			},
			DeleteOptions: metav1.NewPreconditionDeleteOptions(string(oldest.UID)),
		}
		if err := p.kube.CoreV1().Pods(p.System).EvictV1(ctx, eviction); err != nil {
			return fmt.Errorf("evicting pod %s: %w", oldest.Name, err)
		}
		p.say("pods: pod %s is evicted", oldest.Name)
		err = p.back(ctx, "pods", "Deployment "+name, func(ctx context.Context) error {
			now, err := p.ready(ctx, name)
			if slices.ContainsFunc(now, func(pod corev1.Pod) bool { return pod.UID == oldest.UID }) {
				return errors.New("the evicted pod is still there")
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ready returns the pods of a Deployment if it has all of its pods, at least two, and all are
// ready.
func (p *pods) ready(ctx context.Context, name string) ([]corev1.Pod, error) {
	deployment, err := p.kube.AppsV1().Deployments(p.System).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading Deployment %s/%s: %w", p.System, name, err)
	}
	all, err := p.kube.CoreV1().
		Pods(p.System).
		List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(deployment.Spec.Selector)})
	if err != nil {
		return nil, fmt.Errorf("listing the pods of Deployment %s: %w", name, err)
	}
	all.Items = slices.DeleteFunc(all.Items, func(pod corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	})
	replicas, ready := 1, 0
	if deployment.Spec.Replicas != nil {
		replicas = int(*deployment.Spec.Replicas)
	}
	for _, pod := range all.Items {
		if pod.DeletionTimestamp == nil &&
			slices.ContainsFunc(
				pod.Status.Conditions,
				func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue },
			) {
			ready++
		}
	}
	if replicas < 2 || ready != replicas || len(all.Items) != replicas {
		return nil, fmt.Errorf(
			"the Deployment %s is to have %d pods, two at least, and has %d, of which %d are ready",
			name,
			replicas,
			len(all.Items),
			ready,
		)
	}
	return all.Items, nil
}
