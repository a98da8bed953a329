// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/installation"
)

const (
	// perNamespace is how many Repositories share a namespace.
	perNamespace = 100
	// fillers write at once what is only there to be there.
	fillers = 32
	// pause is how long the calls of a restart are counted: longer than anything that it does once.
	pause = 10 * time.Second
	// takeoverRate and takeoverTime are the pushes after a controller was killed: longer than its
	// leases live (15 s).
	takeoverRate = 2
	takeoverTime = 30 * time.Second
	// takeoverLimit is how long their final checks are waited for.
	takeoverLimit = 2 * time.Minute
)

// size measures an installation with so many idle Repositories and so many settled events: its
// first start, its memory, what an event costs, a restart and a takeover.
func size(repositories, settled int) play {
	return func(ctx context.Context, r *room, out *Section) error {
		s, err := r.openQuickly(ctx, setting{installations: 1})
		if err != nil {
			return err
		}
		if err := s.end(ctx); err != nil {
			return err
		}
		if err := s.fill(ctx, repositories, settled); err != nil {
			return fmt.Errorf("filling: %w", err)
		}
		if err := r.cluster.Durable(ctx); err != nil {
			return err
		}
		for _, step := range []func() error{
			func() error {
				return s.start(ctx, "first start", out, func(begin time.Time) error {
					err := s.claimed(ctx, repositories+1)
					out.add("first start: all claimed", "s", time.Since(begin).Seconds(), 0)
					return err
				})
			},
			func() error { return s.end(ctx) },
			func() error {
				return s.start(ctx, "restart", out, func(time.Time) error {
					installation.Until(ctx, time.Now().Add(pause))
					return ctx.Err()
				})
			},
			func() error { return s.pushes(ctx, r.during/4, 1, out, bareFigures{}) },
			func() error { return s.takeover(ctx, out) },
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	}
}

// end ends the processes as a rollout does: they give their leases back.
func (s *stage) end(ctx context.Context) error {
	for _, p := range []*installation.Process{s.controller, s.receiver} {
		if err := p.Terminate(); err != nil {
			return err
		}
		if err := p.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fill makes Repositories of repositories without pushes, and copies of a settled event.
func (s *stage) fill(ctx context.Context, repositories, settled int) error {
	for n := range (repositories + perNamespace - 1) / perNamespace {
		if err := s.cluster.MakeNamespace(ctx, fmt.Sprintf("idle-%d", n)); err != nil {
			return err
		}
	}
	if err := together(ctx, repositories, func(n int) error {
		spec := pacv1alpha1.RepositorySpec{URL: fmt.Sprintf("%s/idle/app-%d", s.forge.URL(), n)}
		_, err := s.installation.Serve(ctx, fmt.Sprintf("idle-%d", n/perNamespace), fmt.Sprintf("app-%d", n), spec)
		return err
	}); err != nil {
		return err
	}
	events := s.installation.Plumbline.PlumblineV1alpha1().GitEvents(system)
	list, err := events.List(ctx, metav1.ListOptions{
		FieldSelector: "status.phase=" + string(v1alpha1.PhaseSettled), Limit: 1,
	})
	if err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return errors.New("no event is settled")
	}
	sample := list.Items[0]
	// Its runs' secrets might come late. After half an hour the controller does not look for them
	// any more.
	sample.Status.LateSecrets, sample.Status.SettledAt = false, &metav1.Time{Time: time.Now().Add(-time.Hour)}
	return together(ctx, settled, func(n int) error {
		event := &v1alpha1.GitEvent{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("settled-%d", n), Annotations: sample.Annotations},
			Spec:       *sample.Spec.DeepCopy(),
		}
		event.Spec.DeliveryKey = event.Name
		created, err := events.Create(ctx, event, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		created.Status = sample.Status
		_, err = events.UpdateStatus(ctx, created, metav1.UpdateOptions{})
		return err
	})
}

// together calls do for each number below n, several at once, and stops at the first error.
func together(ctx context.Context, n int, do func(n int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fillers)
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

// start starts both processes, pushes at once, waits for what else belongs to this start, and adds
// the times and the calls. The push is to a Repository that was claimed before: it should wait for
// no other one.
func (s *stage) start(ctx context.Context, of string, out *Section, rest func(begin time.Time) error) error {
	before, err := s.use()
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := errors.Join(s.controller.Start(ctx), s.receiver.Start(ctx)); err != nil {
		return err
	}
	out.add(of+": ready", "s", time.Since(begin).Seconds(), 0)
	if err := s.firstServed(ctx, begin, of, out); err != nil {
		return err
	}
	if err := rest(begin); err != nil {
		return err
	}
	_, calls, err := s.since(before)
	out.calls(of+": Kubernetes calls", calls, 1)
	return err
}

// firstServed pushes at once and adds when the PipelineRun was there.
func (s *stage) firstServed(ctx context.Context, begin time.Time, of string, out *Section) error {
	events := s.prepare(1, s.repos[0])
	s.deliverAll(ctx, events)
	select {
	case <-events[0].made:
	case <-time.After(ready):
		return errors.New("the first event after a start was not served")
	case <-ctx.Done():
		return ctx.Err()
	}
	out.add(of+": first event served", "s", time.Since(begin).Seconds(), 0)
	return nil
}

// takeover kills the controller beside another one, and pushes on: the leases of the killed one
// have to end first.
func (s *stage) takeover(ctx context.Context, out *Section) error {
	standby, err := s.installation.Controller(ctx, false)
	if err != nil {
		return err
	}
	if err := standby.Start(ctx); err != nil {
		return err
	}
	killed := s.controller
	s.controller = standby
	if err := killed.Kill(); err != nil {
		return err
	}
	events := s.prepare(count(takeoverRate, takeoverTime), s.repos[0])
	installation.OpenLoop(ctx, each(takeoverRate), len(events), func(i int, due time.Time) { s.push(ctx, events[i], due) })
	late := s.finish(ctx, takeoverLimit, events)
	seen := s.seen(events, time.Now())
	out.add("takeover: longest event → PipelineRun", "s", installation.Percentile(seen.run, 100).Seconds(), 0)
	return late
}
