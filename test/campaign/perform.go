// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// perform starts each act at its time, until ctx ends, and waits for the ends of all.
func (s *stage) perform(ctx context.Context, acts []Act) {
	begin := time.Now()
	defer s.sending.Wait()
	defer s.disturbing.Wait()
	for _, act := range acts {
		if !installation.Until(ctx, begin.Add(act.At)) {
			return
		}
		if act.Target == "" {
			s.deliver(context.WithoutCancel(ctx), act)
			continue
		}
		s.disturbing.Go(func() { s.disturb(ctx, act) })
	}
}

// disturb disturbs its target, and undoes it. A target that an earlier act still disturbs is left
// out.
func (s *stage) disturb(ctx context.Context, act Act) {
	if _, one := s.parts[act.Target]; !one {
		s.disturbOthers(ctx, act)
		return
	}
	if s.rolling.Load() {
		s.tally.add("disturbances left out as a rolling restart took longer", 1)
		return
	}
	p := s.parts[act.Target]
	select {
	case <-p.free:
	default:
		return
	}
	defer func() { p.free <- struct{}{} }()
	if s.rolling.Load() { // it has begun meanwhile
		s.tally.add("disturbances left out as a rolling restart took longer", 1)
		return
	}
	switch act.Kind {
	case killing:
		s.hold(ctx, act, p.Kill, func() { _ = s.up(p) }) // restore finds what is still down
	case pausing:
		s.hold(ctx, act, p.Pause, func() { _ = p.Continue() })
	case cutting:
		s.cut(ctx, act)
	case apiFault:
		s.failCalls(ctx, act)
	case killingAtCall:
		s.killAtCall(ctx, act)
	}
}

// cut cuts the connections of a target.
func (s *stage) cut(ctx context.Context, act Act) {
	links := s.links(act.Target)
	s.hold(ctx, act, func() error {
		for _, l := range links {
			l.Cut()
		}
		return nil
	}, func() {
		for _, l := range links {
			l.Restore()
		}
	})
}

// hold applies a disturbance to a target for as long as the act lasts.
func (s *stage) hold(ctx context.Context, act Act, do func() error, undo func()) {
	what := act.Kind + " " + act.Target
	end := s.tally.begin(what)
	defer end()
	if do() == nil {
		s.tally.add(what, 1)
		within(ctx, act.Lasts)
	}
	undo()
}

// link is a connection that may be cut. Restoring one that two acts have cut ends both.
type link interface {
	Cut()
	Restore()
}

// links are the connections of a target: of etcd and Tekton's webhook those from the API server,
// which calls them; of the API server those from all clients; of any other those to the API
// server.
func (s *stage) links(target string) []link {
	wire := s.options.Cluster.Wire
	switch target {
	case cluster.Etcd, cluster.TektonWebhook:
		return []link{wire(target)}
	case cluster.TektonController:
		return []link{wire(cluster.APIServer)}
	case cluster.APIServer:
		all := []link{wire(target)}
		for _, p := range s.processes {
			all = append(all, p.Proxy)
		}
		return all
	default:
		return []link{s.processes[target].Proxy}
	}
}

// disturbOthers disturbs what is not one process.
func (s *stage) disturbOthers(ctx context.Context, act Act) {
	switch act.Kind {
	case rolling:
		s.roll(ctx)
	case gitFault:
		s.failGit(ctx, act)
	case limiting:
		s.limit(ctx, act)
	case killingInTurn:
		s.killInTurn(ctx, act)
	}
}

// within waits for so long, or until ctx ends.
func within(ctx context.Context, long time.Duration) { installation.Until(ctx, time.Now().Add(long)) }

// up restarts a killed process, as the kubelet does, until it is ready.
func (s *stage) up(p *part) error {
	ctx, cancel := context.WithTimeout(context.Background(), ready)
	defer cancel()
	return cluster.Poll(ctx, time.Second, func() error {
		if p.Running() {
			return nil
		}
		return p.Start(ctx)
	})
}

// failCalls lets one kind of calls of a process get wrong answers.
func (s *stage) failCalls(ctx context.Context, act Act) {
	r := act.rand(s.options.Seed)
	all := apiAnswers()
	on, answer := pick(r, callsOf(act.Target)), takesTurn(act, all)
	if answer.often {
		on = pick(r, oftenOf(act.Target))
	}
	rule := cluster.Rule{Do: answer.do}
	if r.IntN(2) == 0 {
		rule.Count = 1 + r.IntN(3)
	}
	if odd := act.Nth / len(all) % 2; odd == 1 { // every other round is met by whatever is called
		on, rule.Count = call{}, 0
	}
	rule.Match = on.matches
	end := s.tally.begin(fmt.Sprintf("%s: %s is answered: %s", act.Target, on, answer.name))
	armed := s.processes[act.Target].Proxy.Add(rule)
	within(ctx, act.Lasts)
	armed.Remove()
	end()
	s.tally.add(apiHits(answer.name), armed.Hits())
}

// takesTurn returns the entry whose turn it is.
func takesTurn[T any](act Act, all []T) T { return all[act.Nth%len(all)] }

// killAtCall kills a process when a call of it has arrived at the proxy: before it takes effect,
// or after.
func (s *stage) killAtCall(ctx context.Context, act Act) {
	r := act.rand(s.options.Seed)
	calls := callsOf(act.Target)[1:] // not any
	on, nth := pick(r, calls), int64(1+r.IntN(3))
	do, when := cluster.Drop(), "before"
	if r.IntN(2) == 0 {
		do, when = cluster.ApplyThenDrop(), "after"
	}
	p := s.parts[act.Target]
	var seen atomic.Int64
	killed := make(chan struct{})
	end := s.tally.begin(fmt.Sprintf("kill -9 %s %s its call %d: %s", act.Target, when, nth, on))
	armed := s.processes[act.Target].Proxy.Add(cluster.Rule{Do: do, Match: func(c cluster.Call) bool {
		if !on.matches(c) || seen.Add(1) != nth {
			return false
		}
		_ = p.Kill()
		close(killed)
		return true
	}})
	select {
	case <-killed:
		s.tally.add(killsOf(act.Target), 1)
		s.tally.add("of them at a call", 1)
		within(ctx, time.Second)
	case <-ctx.Done():
	case <-time.After(act.Lasts):
	}
	armed.Remove()
	_ = s.up(p)
	end()
}

// failGit lets one route of a Git service, or all, answer wrongly.
func (s *stage) failGit(ctx context.Context, act Act) {
	r := act.rand(s.options.Seed)
	all, service := gitAnswers(act.Target), s.services[act.Target]
	answer := takesTurn(act, all)
	over := make(chan struct{})
	fault := forge.Fault{Do: answer.do(over)}
	if r.IntN(2) == 0 && !answer.often {
		fault.Route = pick(r, service.routes())
	}
	if r.IntN(2) == 0 {
		fault.Count = 1 + r.IntN(3)
	}
	if odd := act.Nth / len(all) % 2; odd == 1 { // every other round is met by whatever is called
		fault.Route, fault.Count = "", 0
	}
	end := s.tally.begin(fmt.Sprintf("%s answers %s %q", act.Target, fault.Route, answer.name))
	handle := service.Inject(fault)
	within(ctx, act.Lasts)
	handle.Remove()
	close(over)
	end()
	s.tally.add(gitHits(act.Target, answer.name), handle.Hits())
}

// restore starts what is still down, and raises the limits: at a limit of one a queue may be
// longer than the time to settle. Faults and partitions have ended with their acts.
func (s *stage) restore(ctx context.Context) error {
	for _, target := range []string{
		cluster.Etcd, cluster.APIServer, cluster.TektonWebhook, cluster.TektonController, controller0, controller1, receiver0,
		receiver1,
	} {
		if err := s.up(s.parts[target]); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	for _, r := range s.repositories {
		if err := s.setLimit(ctx, r, finalLimit(r.limit)); err != nil {
			return err
		}
	}
	return nil
}
