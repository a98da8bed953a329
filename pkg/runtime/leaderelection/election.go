// SPDX-License-Identifier: Apache-2.0

// Package leaderelection elects which process works on which keys. The keys of a queue are divided
// into buckets, and each bucket has a lease.
package leaderelection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	clientelection "k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"knative.dev/pkg/hash"
	"knative.dev/pkg/leaderelection"
)

// DrainLimit is how long a process that has to end keeps a lease for keys that it still reconciles.
// A reconcile that takes longer goes on without the lease, and starts no other call for its event
// (attempt.Record.Confirm). The limit is below the 50 s of a reconcile, so that the next process
// does not wait as long as a Git service that hangs.
const DrainLimit = 10 * time.Second

// Election elects this process for leases. Unlike knative's standard elector, it releases a lease
// only after the work under it has ended, and takes a released lease at once.
type Election struct {
	client    kubernetes.Interface
	namespace string
	config    leaderelection.ComponentConfig
	drain     time.Duration
	stop      <-chan struct{}

	mu      sync.Mutex
	terms   map[string]*term // by the names of their leases
	running sync.WaitGroup
}

// New returns an election without leases. It releases all of them when stop is closed. The identity
// in the configuration must be unique; client is used for leases only.
func New(
	stop <-chan struct{}, client kubernetes.Interface, namespace string, config leaderelection.ComponentConfig,
) (*Election, error) {
	e := &Election{
		client:    client,
		namespace: namespace,
		config:    config,
		drain:     DrainLimit,
		stop:      stop,
		terms:     map[string]*term{},
	}
	return e, e.watch()
}

// Wait returns when all leases are released, or could not be. Call it after stop is closed.
func (e *Election) Wait() { e.running.Wait() }

type key struct{}

// With adds an election to the context of controllers' constructors.
func With(ctx context.Context, e *Election) context.Context { return context.WithValue(ctx, key{}, e) }

// run takes part in the election for the queue's leases until stop is closed. Their names are those
// of knative, e.g. "plumbline-controller.gitevents.03-of-10".
func (e *Election) run(q *LeasedReconciler) error {
	prefix := e.config.Component + "." + q.name
	prefix = cmp.Or(e.config.LeaseNamesPrefixMapping[prefix], prefix)
	names := sets.New[string]()
	for n := range e.config.Buckets {
		names.Insert(strings.ToLower(fmt.Sprintf("%s.%02d-of-%02d", prefix, n, e.config.Buckets)))
	}
	buckets := q.needed(hash.NewBucketSet(names).Buckets())
	if err := wanted(q.name, len(buckets)); err != nil {
		return err
	}
	q.log.Infow("Taking part in the election", "queue", q.name, "leases", len(buckets), "identity", e.config.Identity)
	for _, bucket := range buckets {
		t := &term{queue: q, bucket: bucket}
		elector, err := e.elector(t)
		if err != nil {
			return err
		}
		q.add(t)
		e.mu.Lock()
		e.terms[bucket.Name()] = t
		e.mu.Unlock()
		e.running.Go(func() { t.run(elector.Run, e.stop, e.drain) })
	}
	return nil
}

func (e *Election) elector(t *term) (*clientelection.LeaderElector, error) {
	inner, err := resourcelock.New(resourcelock.LeasesResourceLock, e.namespace, t.bucket.Name(), e.client.CoreV1(),
		e.client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: e.config.Identity})
	if err != nil {
		return nil, err
	}
	return clientelection.NewLeaderElector(clientelection.LeaderElectionConfig{
		Lock: &lock{
			Interface: inner,
			term:      t,
			limit:     e.config.RenewDeadline,
			lease:     e.config.LeaseDuration,
		},
		Name:            e.config.Identity,
		ReleaseOnCancel: true,
		LeaseDuration:   e.config.LeaseDuration,
		RenewDeadline:   e.config.RenewDeadline,
		RetryPeriod:     apart(t.bucket.Name(), e.config.RetryPeriod),
		Callbacks:       clientelection.LeaderCallbacks{OnStartedLeading: t.started, OnStoppedLeading: t.lost},
	})
}

// apart returns the retry period of a lease. It is up to a fifth less than configured, and depends
// on the lease's name. Fifty leases that were renewed together kept the API server busy for a
// quarter of a second each time.
func apart(lease string, period time.Duration) time.Duration {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(lease)) // a hash never fails
	return period - time.Duration(sum.Sum32()%1000)*period/5000
}

// lock tells a term about the reads and writes of its lease.
type lock struct {
	resourcelock.Interface
	term *term
	// limit is for writes without a deadline.
	limit time.Duration
	lease time.Duration // how long the lease is valid after a write
	ours  bool          // the record that was last read names this process
}

// Get implements resourcelock.Interface. If the lease is not this process's any more, for example
// after a pause, Get ends the term at once. The elector would retry until its deadline. Then it
// would take a free lease as if no other process had had it meanwhile.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	l.ours = err == nil && record.HolderIdentity == l.Identity()
	if err == nil && !l.ours {
		l.term.taken()
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

// write ends the term before the lease is released, because nothing may start after another process
// can have the lease. A write is not cancelled before its deadline, because it may be applied after
// the lease was read to release it. Then the release would fail with a conflict, and all processes
// would wait until the lease expires.
func (l *lock) write(
	ctx context.Context, record resourcelock.LeaderElectionRecord,
	send func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	if record.HolderIdentity == "" {
		l.term.lost()
		if !l.ours { // the elector uses what it knew before its read: it would end another process's lease
			return errNotOurs
		}
		return send(ctx, record)
	}
	deadline, limited := ctx.Deadline()
	if !limited {
		deadline = time.Now().Add(l.limit)
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	defer cancel()
	l.term.writes()
	asked := time.Now()
	err := send(ctx, record)
	l.term.wrote(asked.Add(l.lease), err == nil)
	return err
}

var errNotOurs = errors.New("the lease is not this process's any more")
