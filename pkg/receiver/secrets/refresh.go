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
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

const (
	// sendInterval is the least time between two requests of a receiver, whatever is delivered: one
	// small write a second.
	sendInterval = time.Second
	// usedInterval is how soon a secret in use is requested again. With sendInterval and the time
	// that the controller takes, a value that was removed is refused within the 30 s of S31.
	usedInterval = 20 * time.Second
	// mismatchInterval is how soon a secret is requested again that deliveries do not match (S4: at
	// most once a second).
	mismatchInterval = time.Second
	// sendTimeout bounds a request that is not answered.
	sendTimeout = 3 * time.Second
	// maxPending bounds the pending requests. A secret beyond it is requested at its next use.
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

// Refresher requests new copies of webhook secrets from the controllers.
type Refresher struct {
	client configMapPatcher
	clock  clock.PassiveClock
	logger *zap.SugaredLogger
	wake   chan struct{}

	mu        sync.Mutex
	requested recent.Map[string, time.Time] // the last request, by ID
	urgent    []string                      // secrets that are missing, or that deliveries do not match
	used      []string
	failing   bool
}

// NewRefresher requests nothing before Run.
func NewRefresher(client configMapPatcher, c clock.PassiveClock, logger *zap.SugaredLogger) *Refresher {
	return &Refresher{client: client, clock: c, logger: logger, wake: make(chan struct{}, 1)}
}

// Used requests a copy that is in use.
func (r *Refresher) Used(id string) { r.request(&r.used, id, usedInterval) }

// Mismatched requests a copy that is missing, or that a delivery does not match.
func (r *Refresher) Mismatched(id string) { r.request(&r.urgent, id, mismatchInterval) }

// Failing reports whether the last request could not be sent.
func (r *Refresher) Failing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failing
}

func (r *Refresher) request(pending *[]string, id string, interval time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, known := r.requested.Get(id); known && r.clock.Since(at) < interval {
		return
	}
	if len(r.urgent)+len(r.used) >= maxPending || slices.Contains(*pending, id) {
		return
	}
	r.requested.Put(id, r.clock.Now())
	*pending = append(*pending, id)
	r.wakeUp()
}

func (r *Refresher) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run sends the requests until stop is closed.
func (r *Refresher) Run(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-r.wake:
		}
		r.send()
		select {
		case <-stop:
			return
		case <-time.After(sendInterval):
		}
	}
}

// send requests as many secrets as fit into one request, urgent ones first. If that fails, they are
// sent with the next request.
func (r *Refresher) send() {
	ids := r.take()
	if len(ids) == 0 {
		return
	}
	// The time makes each request a change, which wakes the watching controller.
	patch, err := json.Marshal(map[string]any{"data": map[string]string{
		webhooksecret.AsksKey: strings.Join(ids, " "),
		"at":                  r.clock.Now().UTC().Format(time.RFC3339Nano),
	}})
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), sendTimeout)
		defer cancel()
		_, err = r.client.Patch(ctx, webhooksecret.Asks, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && !r.failing {
		r.logger.Warnw("requesting new copies of webhook secrets failed, so a rotated secret is noticed later; "+
			"if it is forbidden, grant patch on ConfigMap "+webhooksecret.Asks+" as in config/", "error", err)
	}
	r.failing = err != nil
	if err != nil {
		r.urgent = append(ids, r.urgent...)
	}
	if len(r.urgent)+len(r.used) > 0 {
		r.wakeUp()
	}
}

func (r *Refresher) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Concat(r.urgent, r.used)
	n := min(len(all), webhooksecret.MaxAsks)
	left := max(0, len(r.urgent)-n)
	r.urgent, r.used = slices.Clone(r.urgent[len(r.urgent)-left:]), slices.Clone(all[max(n, len(r.urgent)):])
	return all[:n]
}
