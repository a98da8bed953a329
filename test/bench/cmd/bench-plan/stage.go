// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

const (
	system = "plumbline"
	poll   = 100 * time.Millisecond
	limit  = 10 * time.Minute // of one event, from its delivery to its end
)

// stage is one installation with one receiver and one controller, each behind a proxy that logs its calls.
type stage struct {
	slow                 delays
	cluster              *cluster.Cluster
	forge                *forge.GitHub
	app                  forge.App
	plumbline            *installation.Installation
	receiver, controller *installation.Process
}

// delays stand for the distance that loopback does not have.
type delays struct{ git, create time.Duration }

// open starts everything. What it started is in the stage even when it fails.
func open(ctx context.Context, c *cluster.Cluster, programs installation.Programs, slow delays) (*stage, error) {
	s := &stage{slow: slow, cluster: c, forge: forge.New(forge.Options{RefuseEarlyConclusion: true})}
	if err := s.forge.Start(); err != nil {
		return s, err
	}
	s.app = s.forge.CreateApp(1, "plumbline", "", "the-secret-of-the-bench")
	var err error
	s.plumbline, err = installation.New(ctx, installation.Options{Cluster: s.cluster, Forge: s.forge, App: s.app, Programs: programs, Namespace: system})
	if err != nil {
		return s, err
	}
	if s.receiver, err = s.plumbline.Receiver(ctx, true); err != nil {
		return s, err
	}
	if s.controller, err = s.plumbline.Controller(ctx, true); err != nil {
		return s, err
	}
	if slow.git > 0 {
		s.forge.Inject(forge.Fault{Do: forge.Delay(slow.git)})
	}
	return s, errors.Join(s.receiver.Start(ctx), s.controller.Start(ctx))
}

// close ends the processes and the Git service.
func (s *stage) close() {
	for _, p := range []*installation.Process{s.receiver, s.controller} {
		if p != nil {
			_ = p.Kill()
			p.Proxy.Close()
		}
	}
	_ = s.forge.Close()
}

// reset empties the logs of the proxies.
func (s *stage) reset() {
	s.receiver.Proxy.Reset()
	s.controller.Proxy.Reset()
	if s.slow.create > 0 {
		created := func(call cluster.Call) bool { return call.Is("create", "pipelineruns") }
		s.controller.Proxy.Add(cluster.Rule{Match: created, Do: cluster.Delay(s.slow.create)})
	}
}

// serve makes a repository on the forge and the Repository that accepts its events, in a namespace of its own.
func (s *stage) serve(ctx context.Context, name string) error {
	repo := s.forge.CreateRepo("acme", name, forge.RepoOptions{})
	s.forge.Install(s.app.ID, "acme", repo.FullName)
	if err := s.cluster.Apply(ctx, []byte("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: "+name+"\n")); err != nil {
		return err
	}
	repositories := s.plumbline.Plumbline.PipelinesascodeV1alpha1().Repositories(name)
	_, err := repositories.Create(ctx, &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}, Spec: pacv1alpha1.RepositorySpec{URL: repo.HTMLURL},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return until(ctx, "Repository "+name+" is ready", func() (bool, error) {
		found, err := repositories.Get(ctx, name, metav1.GetOptions{})
		return err == nil && found.Status.GetCondition(pacv1alpha1.RepositoryURL).IsTrue(), err
	})
}

// until polls up to the limit.
func until(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := cluster.Poll(ctx, poll, func() error {
		ok, err := done()
		if ok {
			return nil
		}
		return cmp.Or(err, errNotYet)
	})
	if err != nil {
		return fmt.Errorf("not within %s: %s: %w", limit, what, err)
	}
	return nil
}

// errNotYet is what is waited for without an error.
var errNotYet = errors.New("not yet")
