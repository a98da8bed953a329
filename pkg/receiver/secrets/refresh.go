// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
)

const (
	// askEvery is the least time between two asks of a receiver, whatever is delivered: one small
	// write a second.
	askEvery = time.Second
	// usedEvery is how soon a secret that goes on being used is asked for again. With askEvery and
	// what the controller takes a value that was taken away is refused within the 30 s of S31.
	usedEvery = 20 * time.Second
	// wantedEvery is how soon a secret is asked for again that deliveries do not fit (S4: at most
	// once a second).
	wantedEvery = time.Second
	// askTime bounds an ask whose answer does not come.
	askTime = 3 * time.Second
	// maxPending bounds what waits to be asked for; what does not fit is asked for at its next use.
	maxPending = 1024
)

type configMapPatcher interface {
	Patch(
		ctx context.Context,
		name string,
		kind types.PatchType,
		data []byte,
		opts metav1.PatchOptions,
		subresources ...string,
	) (*corev1.ConfigMap, error)
}

// Asks asks controllers to make copies of webhook secrets anew. It is the one thing that a receiver
// can cause there.
type Asks struct {
	client configMapPatcher
	clock  clock.PassiveClock
	logger *zap.SugaredLogger
	more   chan struct{}

	mu      sync.Mutex
	asked   map[string]time.Time // by ID, when it was last asked for
	wanted  []string             // deliveries do not fit them
	used    []string
	failing bool
}

// NewAsks asks nothing before Run.
func NewAsks(client configMapPatcher, c clock.PassiveClock, logger *zap.SugaredLogger) *Asks {
	return &Asks{client: client, clock: c, logger: logger, more: make(chan struct{}, 1), asked: map[string]time.Time{}}
}

// Used says that a copy is in use.
func (a *Asks) Used(id string) { a.add(&a.used, id, usedEvery) }

// Wanted says that a copy is missing, or that a delivery does not fit it.
func (a *Asks) Wanted(id string) { a.add(&a.wanted, id, wantedEvery) }

// Failing reports whether the last ask could not be sent.
func (a *Asks) Failing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failing
}

func (a *Asks) add(to *[]string, id string, every time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, known := a.asked[id]; known && a.clock.Since(at) < every {
		return
	}
	if len(a.wanted)+len(a.used) >= maxPending || slices.Contains(*to, id) {
		return
	}
	if len(a.asked) >= maxPending {
		a.forget()
	}
	a.asked[id] = a.clock.Now()
	*to = append(*to, id)
	select {
	case a.more <- struct{}{}:
	default:
	}
}

// forget drops what is asked for again anyway.
func (a *Asks) forget() {
	for id, at := range a.asked {
		if a.clock.Since(at) >= usedEvery {
			delete(a.asked, id)
		}
	}
}

// Run sends what is to be asked until stop is closed.
func (a *Asks) Run(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-a.more:
		}
		a.send()
		select {
		case <-stop:
			return
		case <-time.After(askEvery):
		}
	}
}

// send asks for as much as fits, what deliveries do not fit first. What could not be sent is sent
// the next time.
func (a *Asks) send() {
	ids := a.take()
	if len(ids) == 0 {
		return
	}
	// The time makes each ask a change, which whoever watches is told of.
	patch, err := json.Marshal(
		map[string]any{
			"data": map[string]string{
				webhooksecret.AsksKey: strings.Join(ids, " "),
				"at":                  a.clock.Now().UTC().Format(time.RFC3339Nano),
			},
		},
	)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), askTime)
		defer cancel()
		_, err = a.client.Patch(ctx, webhooksecret.Asks, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil && !a.failing {
		a.logger.Warnw(
			"asking for webhook secrets to be copied anew failed: rotated ones are noticed later; grant patch on ConfigMap "+webhooksecret.Asks+" as in config/ if it is forbidden",
			"error",
			err,
		)
	}
	a.failing = err != nil
	if err != nil {
		a.wanted = append(ids, a.wanted...)
	}
	if len(a.wanted)+len(a.used) > 0 {
		select {
		case a.more <- struct{}{}:
		default:
		}
	}
}

func (a *Asks) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := slices.Concat(a.wanted, a.used)
	n := min(len(all), webhooksecret.MaxAsks)
	left := max(0, len(a.wanted)-n)
	a.wanted, a.used = slices.Clone(a.wanted[len(a.wanted)-left:]), slices.Clone(all[max(n, len(a.wanted)):])
	return all[:n]
}
