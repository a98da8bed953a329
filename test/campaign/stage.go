// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

// ready bounds the waits of the start.
const ready = 2 * time.Minute

// stage is an installation with two receivers and two controllers, each behind its own proxy. Each
// tenant has a repository on each of two Git services.
type stage struct {
	options      Options
	installation *installation.Installation
	front        *front
	services     map[string]service // by target
	repositories []*repository
	processes    map[string]*installation.Process // by target
	parts        map[string]*part                 // by target
	tally        *tally
	// sending and disturbing are the acts that go on.
	sending, disturbing sync.WaitGroup
	// history judges every version of what is stored. followed is closed when it ends, with
	// followErr; follow ends it.
	history   *invariants.History
	follow    context.CancelFunc
	followed  chan struct{}
	followErr error
	// rolling is true while receivers are replaced, which may take longer than the schedule has for
	// it.
	rolling atomic.Bool
	// deaths are the processes of ours that ended by themselves.
	deathsMu sync.Mutex
	deaths   []Finding
}

// tenants share only the Git services and our processes: each has a namespace, and a project on
// each service with its own credentials.
func tenants() []string { return []string{"acme", "umbra"} }

// open starts everything. The stage has what was started even when open fails.
func open(ctx context.Context, o Options) (*stage, error) {
	s := &stage{
		options: o, front: newFront(), tally: newTally(), services: map[string]service{},
		processes: map[string]*installation.Process{}, parts: map[string]*part{},
	}
	hub, err := newGitHub()
	if err != nil {
		return s, err
	}
	s.services[onGitHub] = hub
	lab, err := newGitLab()
	if err != nil {
		return s, err
	}
	s.services[onGitLab] = lab
	hub.SetWebhookURL(hub.app.ID, s.front.server.URL)
	system, err := o.Cluster.CreateNamespace(ctx, "plumbline")
	if err != nil {
		return s, err
	}
	if err := s.remember(ctx, system); err != nil {
		return s, err
	}
	s.installation, err = installation.New(ctx, installation.Options{
		Cluster: o.Cluster, Forge: hub.GitHub, App: hub.app, Programs: o.Programs, Namespace: system,
		Config: [][3]string{
			// One bucket with quick leases: a takeover then takes seconds.
			{"plumbline-config-leader-election", "buckets", "1"},
			{"plumbline-config-leader-election", "lease-duration", "6s"},
			{"plumbline-config-leader-election", "renew-deadline", "4s"},
			{"plumbline-config-leader-election", "retry-period", "1s"},
		},
	})
	if err != nil {
		return s, err
	}
	return s, errors.Join(s.start(ctx), s.serve(ctx))
}

// start starts the processes.
func (s *stage) start(ctx context.Context) error {
	for _, target := range []string{receiver0, receiver1, controller0, controller1} {
		process, err := s.process(ctx, target)
		if err != nil {
			return err
		}
		process.Proxy.Add(refusal())
		s.processes[target] = process
		s.parts[target] = s.ours(target, process.Part)
	}
	for _, name := range []string{cluster.TektonWebhook, cluster.TektonController, cluster.APIServer, cluster.Etcd} {
		s.parts[name] = newPart(s.options.Cluster.Part(name))
	}
	// receivers are ready when the secrets are copied
	for _, target := range []string{controller0, controller1, receiver0, receiver1} {
		if err := s.parts[target].Start(ctx); err != nil {
			return err
		}
	}
	s.front.list(s.processes[receiver0].URL)
	s.front.list(s.processes[receiver1].URL)
	return nil
}

func (s *stage) process(ctx context.Context, target string) (*installation.Process, error) {
	if target == receiver0 || target == receiver1 {
		return s.installation.Receiver(ctx, true)
	}
	// The waits for an operator, and for late writes of another controller, are as short as leases.
	return s.installation.Controller(ctx, true, "-operator-retry=3s", "-late-reports=3s")
}

// serve creates the Repositories, and waits until they own their URLs: before that, receivers
// answer that no Repository does.
func (s *stage) serve(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	for _, tenant := range tenants() {
		namespace, err := s.options.Cluster.CreateNamespace(ctx, tenant)
		if err != nil {
			return err
		}
		for _, on := range []string{onGitHub, onGitLab} {
			r := &repository{
				service: on, tenant: tenant, namespace: namespace, limit: s.limitOf(len(s.repositories)),
				outcomes: map[string]outcome{}, counts: map[string]int{}, approved: map[string]bool{}, pairs: map[string]string{},
				heads: invariants.Heads{},
			}
			r.project, r.path = s.services[on].found(tenant)
			s.repositories = append(s.repositories, r)
			if err := s.connect(ctx, r); err != nil {
				return fmt.Errorf("connecting %s: %w", r.path, err)
			}
		}
	}
	return s.warm(ctx)
}

// connect creates a Repository.
func (s *stage) connect(ctx context.Context, r *repository) error {
	spec, err := r.connect(ctx, s.installation, r.namespace)
	if err != nil {
		return err
	}
	if r.limit > 0 {
		spec.ConcurrencyLimit = &r.limit
	}
	if _, err := s.installation.Serve(ctx, r.namespace, r.name(), spec); err != nil {
		return err
	}
	return s.installation.Claimed(ctx, spec.URL)
}

// warm delivers once to each repository until it is accepted: then the receivers have the webhook
// secrets.
func (s *stage) warm(ctx context.Context) error {
	for _, r := range s.repositories {
		r.first = r.pushed("main", files("warm", 0, 0))
		if err := cluster.Poll(ctx, 200*time.Millisecond, func() error {
			if code := r.send(ctx, s.front.server.URL, r.first); code/100 != 2 {
				return fmt.Errorf("the first delivery of %s is answered %d", r.path, code)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// close ends everything. What cannot be removed ends with the cluster.
func (s *stage) close() (err error) {
	for target := range s.processes {
		err = errors.Join(err, s.parts[target].Kill()) // an end that is meant
	}
	s.front.server.CloseClientConnections()
	for _, on := range s.services {
		err = errors.Join(err, on.Close())
	}
	if s.follow != nil {
		s.follow()
		<-s.followed
	}
	var namespaces []string
	for _, r := range s.repositories {
		namespaces = append(namespaces, r.namespace)
	}
	return errors.Join(err, s.installation.Close(namespaces...))
}
