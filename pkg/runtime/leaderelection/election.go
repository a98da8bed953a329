// SPDX-License-Identifier: Apache-2.0

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

// Drain is how long a process that was told to end keeps a lease because it still works on a key of
// it. What hangs for longer goes on without the lease and begins no other call for its event
// (attempt.Record.Confirm). It is below the 50 s of a reconcile, so that a Git service that hangs
// does not keep the next process waiting for as long.
const DrainLimit = 10 * time.Second

// Election is this process's part in the election of who holds which lease. It has what knative's
// standard elector has not: a lease is given back after the work under it has ended, and a lease
// that was given back is taken at once.
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

// New returns an election in which nobody takes part yet. When stop is closed every lease is given
// back. The identity in the configuration has to be this process's alone; client is used for leases
// only.
func New(
	stop <-chan struct{},
	client kubernetes.Interface,
	namespace string,
	config leaderelection.ComponentConfig,
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

// Wait returns when every lease has been given back, or could not be. Call it after stop is closed.
func (e *Election) Wait() { e.running.Wait() }

type key struct{}

// With adds an election to the context of controllers' constructors.
func With(ctx context.Context, e *Election) context.Context { return context.WithValue(ctx, key{}, e) }

// run takes part in the election for the queue's leases until stop is closed. They have the names
// that knative gives them, e.g. "plumbline-controller.gitevents.03-of-10".
func (e *Election) run(q *Queue) error {
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
	q.log.Infow("Standing for leases", "queue", q.name, "leases", len(buckets), "identity", e.config.Identity)
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
	inner, err := resourcelock.New(
		resourcelock.LeasesResourceLock,
		e.namespace,
		t.bucket.Name(),
		e.client.CoreV1(),
		e.client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: e.config.Identity},
	)
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

// apart is how often a lease is renewed: a time of its own, up to a fifth less than what is
// configured. Fifty leases that were all renewed together kept the API server from everybody else
// for a quarter of a second each time.
func apart(lease string, period time.Duration) time.Duration {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(lease)) // a hash never fails
	return period - time.Duration(sum.Sum32()%1000)*period/5000
}

// lock tells a term of the writes of its lease.
type lock struct {
	resourcelock.Interface
	term *term
	// limit is for writes without a deadline.
	limit time.Duration
	lease time.Duration // how long it is held after a write
	ours  bool          // the record that was last read names this process
}

// Get implements resourcelock.Interface. The elector goes on renewing until its deadline when it
// reads another one's name, e.g. after a pause, or reads that the lease is nobody's, and then takes
// it as if nobody had had it meanwhile: the term is ended at once.
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

// write gives the lease up before it is given back: nothing may be begun after another process can
// have it. A write is not cancelled before its deadline: it might land after the lease was read to
// give it back, which then fails with a conflict, and everybody waits until the lease is over.
func (l *lock) write(
	ctx context.Context,
	record resourcelock.LeaderElectionRecord,
	send func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	if record.HolderIdentity == "" {
		l.term.lost()
		if !l.ours { // the elector asks what it knew before it read: it would end another one's lease
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
