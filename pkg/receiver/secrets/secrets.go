// SPDX-License-Identifier: Apache-2.0

// Package secrets has the copies of webhook secrets that controllers make for the receivers, and
// requests newer copies.
package secrets

import (
	"bytes"
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

const (
	// newerWait is Copies.Wait by default. A controller needs some 100 ms for a copy, and a
	// delivery has 7 s in all.
	newerWait = 2 * time.Second
	// maxWaiting and maxWaitingForOne bound the deliveries that wait, in all and for one secret,
	// because they are unverified and each has a slot. Of all slots, maxWaitingForOne are reserved
	// for deliveries of the App, which wait for a newer copy. So Repositories that name missing
	// Secrets do not block a rotation.
	maxWaiting       = 16
	maxWaitingForOne = 4
	// timeoutMemory is how long no delivery waits for a secret after another one has waited without
	// effect. A sender that guesses secrets waits once in that time. A rotated secret is copied
	// meanwhile, because each guess requests a copy, too.
	timeoutMemory = 30 * time.Second
)

// Copies are copies of webhook secrets. Looking one up costs no call, and works while neither the
// API server nor a controller does. A copy is requested again when it is used, and when a delivery
// does not match it.
type Copies struct {
	// Wait is how long a delivery that matches no copy waits for a newer one.
	Wait time.Duration

	clock     clock.PassiveClock
	refresher *Refresher

	mu       sync.Mutex
	shards   [webhooksecret.Shards]*corev1.Secret
	changed  chan struct{} // closed when a shard changes
	complete bool
	waiting  map[string]int                // deliveries that wait, by ID
	total    int                           // of them
	timeouts recent.Map[string, time.Time] // when a delivery last waited without effect, by ID
}

// New returns empty Copies.
func New(refresher *Refresher, c clock.PassiveClock) *Copies {
	return &Copies{
		Wait:      newerWait,
		clock:     c,
		refresher: refresher,
		changed:   make(chan struct{}),
		waiting:   map[string]int{},
	}
}

// Set stores a shard as it is now. When a shard was deleted by mistake, a controller fills it again
// within its budget of reads. Until it is complete, the shard before that is used.
func (c *Copies) Set(shard *corev1.Secret) {
	number, ours := webhooksecret.ShardNumber(shard.Name)
	if !ours {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if webhooksecret.Complete(c.shards[number]) && !webhooksecret.Complete(shard) {
		return
	}
	c.shards[number] = shard
	close(c.changed)
	c.changed = make(chan struct{})
	if !c.complete {
		c.complete = c.allComplete()
	}
}

func (c *Copies) allComplete() bool {
	for _, shard := range c.shards {
		if !webhooksecret.Complete(shard) {
			return false
		}
	}
	return true
}

// Complete reports whether all secrets were copied once, and then stays true. A receiver is not
// ready before: it would replace one that knows more secrets.
func (c *Copies) Complete() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.complete
}

// Secret returns the copy of a webhook secret, and waits for a missing one shortly. A missing copy
// says nothing of the delivery: it is an Operator fault once all secrets were copied, and a
// Transient one before.
func (c *Copies) Secret(ctx context.Context, key pacv1alpha1.SecretKey) (Secret, error) {
	id := webhooksecret.ID(key)
	value, found, _ := c.find(id)
	if !found {
		value, found = c.await(ctx, id, webhooksecret.Value{})
	}
	if !found {
		return Secret{}, c.missing(key)
	}
	c.refresher.Used(id)
	secret := secretOf(key, value)
	secret.newer = func(wait bool) (Secret, error) {
		if !wait {
			c.refresher.Mismatched(id)
		} else if next, changed := c.await(ctx, id, value); changed {
			return secretOf(key, next), nil
		}
		if c.refresher.Failing() {
			return Secret{}, fault.Transientf(reasonSecretNotRead,
				"the delivery does not match the copy of Secret %s/%s, and a newer copy cannot be requested", key.Namespace,
				key.Name)
		}
		return Secret{}, nil
	}
	return secret, nil
}

// Copy is Secret without waiting or requesting a copy.
func (c *Copies) Copy(key pacv1alpha1.SecretKey) (Secret, error) {
	value, found, _ := c.find(webhooksecret.ID(key))
	if !found {
		return Secret{}, c.missing(key)
	}
	return secretOf(key, value), nil
}

// Request requests a newer copy. It is urgent if a request that the copy should accept was refused.
func (c *Copies) Request(key pacv1alpha1.SecretKey, urgent bool) {
	if id := webhooksecret.ID(key); urgent {
		c.refresher.Mismatched(id)
	} else {
		c.refresher.Used(id)
	}
}

// missing returns the error for a missing copy.
func (c *Copies) missing(key pacv1alpha1.SecretKey) error {
	if !c.Complete() {
		return fault.Transientf(reasonNotCopiedYet, "the webhook secrets are not copied yet: are the controllers running?")
	}
	return fault.Operatorf(
		reasonSecretMissing,
		"there is no copy of the key %s of Secret %s/%s: create it, with a value of at most %d bytes; "+
			"the controllers copy it within seconds",
		key.Key,
		key.Namespace,
		key.Name,
		webhooksecret.MaxValueBytes,
	)
}

func secretOf(key pacv1alpha1.SecretKey, value webhooksecret.Value) Secret {
	return Secret{Key: key, Current: value.Current, Previous: value.Previous}
}

// Waiting returns how many deliveries wait for a copy.
func (c *Copies) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// find returns the copy, and a channel that is closed when any copy changes.
func (c *Copies) find(id string) (webhooksecret.Value, bool, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	shard := c.shards[webhooksecret.ShardOf(id)]
	if shard == nil {
		return webhooksecret.Value{}, false, c.changed
	}
	value, found := webhooksecret.Copy(shard.Data, id)
	return value, found, c.changed
}

// await requests a copy, and waits until it differs from the old one, if so many may wait.
func (c *Copies) await(ctx context.Context, id string, old webhooksecret.Value) (webhooksecret.Value, bool) {
	c.refresher.Mismatched(id)
	if !c.startWaiting(id, len(old.Current) == 0) {
		return webhooksecret.Value{}, false
	}
	timer := time.NewTimer(c.Wait)
	defer timer.Stop()
	for {
		value, found, changed := c.find(id)
		if found && (!bytes.Equal(value.Current, old.Current) || !bytes.Equal(value.Previous, old.Previous)) {
			c.stopWaiting(id, false)
			return value, true
		}
		select {
		case <-changed:
		case <-timer.C:
			c.stopWaiting(id, true)
			return webhooksecret.Value{}, false
		case <-ctx.Done():
			c.stopWaiting(id, false)
			return webhooksecret.Value{}, false
		}
	}
}

func (c *Copies) startWaiting(id string, missing bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	limit := maxWaiting
	if missing {
		limit -= maxWaitingForOne
	}
	at, timedOut := c.timeouts.Get(id)
	if timedOut && c.clock.Since(at) < timeoutMemory || c.total >= limit || c.waiting[id] >= maxWaitingForOne {
		return false
	}
	c.total++
	c.waiting[id]++
	return true
}

func (c *Copies) stopWaiting(id string, timedOut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total--
	if c.waiting[id]--; c.waiting[id] == 0 {
		delete(c.waiting, id)
	}
	if timedOut {
		c.timeouts.Put(id, c.clock.Now())
	}
}
