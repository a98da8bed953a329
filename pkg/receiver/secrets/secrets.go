// SPDX-License-Identifier: Apache-2.0

// Package secrets has the webhook secrets as controllers have copied them for the receivers, and
// asks for newer copies.
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
)

const (
	// newerWait is Copies.Wait as shipped: the controller needs some 100 ms for a copy, and the
	// delivery has 7 s in all.
	newerWait = 2 * time.Second
	// maxWaiting and maxWaitingForOne bound the deliveries that wait: nobody has verified them, and
	// each holds one of the places for deliveries. As many as wait for one are kept for a newer
	// copy, which only the App's deliveries wait for: whoever names Secrets that are missing does
	// not take the room of a rotation.
	maxWaiting       = 16
	maxWaitingForOne = 4
	// vainFor is how long nobody waits for a secret after somebody has waited in vain. Who guesses
	// secrets waits once in that time; a rotated secret is copied meanwhile, because each guess
	// asks for that, too.
	vainFor = 30 * time.Second
)

// Copies are the webhook secrets as controllers have copied them. To look one up costs no call, and
// works while neither the API server nor a controller does. A copy that is used, or that a delivery
// does not fit, is asked to be made anew.
type Copies struct {
	// Wait is how long a delivery that fits no copy waits for a newer one.
	Wait time.Duration

	clock clock.PassiveClock
	asks  *Asks

	mu       sync.Mutex
	shards   [webhooksecret.Shards]*corev1.Secret
	changed  chan struct{} // closed when a shard changes
	complete bool
	waiting  map[string]int       // deliveries that wait, by ID
	all      int                  // of them
	vain     map[string]time.Time // when somebody last waited in vain, by ID
}

// New returns Copies that have none yet.
func New(asks *Asks, c clock.PassiveClock) *Copies {
	return &Copies{
		Wait:    newerWait,
		clock:   c,
		asks:    asks,
		changed: make(chan struct{}),
		waiting: map[string]int{},
		vain:    map[string]time.Time{},
	}
}

// Set takes a shard as it is now. A shard that is deleted is kept as it was until it is complete
// again: somebody's mistake, which a controller undoes within its budget of reads.
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

// Complete reports whether everything that is to be copied was, once: a receiver that knows less
// does not replace one that knows more. It stays true.
func (c *Copies) Complete() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.complete
}

// Secret returns the copy of a webhook's secret. Without one it waits for it shortly. That there is
// none says nothing of the delivery: it is an Operator fault once everything was copied, and a
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
	c.asks.Used(id)
	secret := secretOf(key, value)
	secret.newer = func(wait bool) (Secret, error) {
		if !wait {
			c.asks.Wanted(id)
		} else if next, changed := c.await(ctx, id, value); changed {
			return secretOf(key, next), nil
		}
		if c.asks.Failing() {
			return Secret{}, fault.Transientf(
				"SecretNotRead",
				"the delivery does not fit the copy of Secret %s/%s, and a newer one cannot be asked for",
				key.Namespace,
				key.Name,
			)
		}
		return Secret{}, nil
	}
	return secret, nil
}

// Copy is as Secret, and neither waits nor asks for a copy.
func (c *Copies) Copy(key pacv1alpha1.SecretKey) (Secret, error) {
	value, found, _ := c.find(webhooksecret.ID(key))
	if !found {
		return Secret{}, c.missing(key)
	}
	return secretOf(key, value), nil
}

// missing says what it means that there is no copy.
func (c *Copies) missing(key pacv1alpha1.SecretKey) error {
	if !c.Complete() {
		return fault.Transientf("NotCopiedYet", "the webhook secrets are not copied yet: are the controllers running?")
	}
	return fault.Operatorf(
		"SecretMissing",
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

// Waiting is how many deliveries wait for a copy.
func (c *Copies) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// find returns the copy, and what is closed when there may be another.
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

// await asks for a copy that is not the old one, and waits for it while there is room to wait.
func (c *Copies) await(ctx context.Context, id string, old webhooksecret.Value) (webhooksecret.Value, bool) {
	c.asks.Wanted(id)
	if !c.enter(id, len(old.Current) == 0) {
		return webhooksecret.Value{}, false
	}
	timer := time.NewTimer(c.Wait)
	defer timer.Stop()
	for {
		value, found, changed := c.find(id)
		if found && (!bytes.Equal(value.Current, old.Current) || !bytes.Equal(value.Previous, old.Previous)) {
			c.leave(id, false)
			return value, true
		}
		select {
		case <-changed:
		case <-timer.C:
			c.leave(id, true)
			return webhooksecret.Value{}, false
		case <-ctx.Done():
			c.leave(id, false)
			return webhooksecret.Value{}, false
		}
	}
}

func (c *Copies) enter(id string, missing bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, at := range c.vain {
		if c.clock.Since(at) >= vainFor {
			delete(c.vain, other)
		}
	}
	room := maxWaiting
	if missing {
		room -= maxWaitingForOne
	}
	if _, vain := c.vain[id]; vain || c.all >= room || c.waiting[id] >= maxWaitingForOne {
		return false
	}
	c.all++
	c.waiting[id]++
	return true
}

func (c *Copies) leave(id string, inVain bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.waiting[id]--; c.waiting[id] == 0 {
		delete(c.waiting, id)
	}
	if inVain {
		c.vain[id] = c.clock.Now()
	}
}
