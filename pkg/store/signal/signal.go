// SPDX-License-Identifier: Apache-2.0

// Package signal is how receivers tell controllers that deliveries may have been missed: those that
// were answered 503, and those that came while there was no receiver. Which ones, the Git service's
// log tells (docs/adr/0030).
package signal

import (
	"context"
	"encoding/json"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// Asks is the ConfigMap that receivers patch. The roles in config/ name it.
	Asks = "plumbline-missed-deliveries-asks"
	// Ledger is the ConfigMap in which the controller keeps how far it has read the log, and what
	// is missed.
	Ledger = "plumbline-missed-deliveries"
	// askEvery is the least time between two asks of one receiver, however many deliveries it
	// refuses: each costs the controller a look at the Git service's log.
	askEvery = 10 * time.Second
	// tryEvery is how soon an ask that failed is repeated. It fails as long as the API server is
	// away, and succeeds as soon as deliveries can be stored again: that is the moment to ask for
	// them.
	tryEvery = time.Second
	// askTimeout ends a try.
	askTimeout = 5 * time.Second
	// key is the only one of Asks. The time makes each ask a change, which whoever watches is told
	// of.
	key = "at"
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

// Asker asks the controllers of its installation to look for missed deliveries. Safe for concurrent
// use.
type Asker struct {
	client configMapPatcher
	logger *zap.SugaredLogger
	more   chan struct{}
	// every and again are askEvery and tryEvery.
	every, again time.Duration
}

// NewAsker asks nothing before Run.
func NewAsker(client configMapPatcher, logger *zap.SugaredLogger) *Asker {
	return &Asker{client: client, logger: logger, more: make(chan struct{}, 1), every: askEvery, again: tryEvery}
}

// Ask says that a delivery may have been missed up to now. It does not block; several asks are one.
func (a *Asker) Ask() {
	select {
	case a.more <- struct{}{}:
	default:
	}
}

// Run sends what is asked until stop is closed, each ask until the API server has taken it.
func (a *Asker) Run(stop <-chan struct{}) {
	failing := false
	for {
		select {
		case <-stop:
			return
		case <-a.more:
		}
		wait := a.every
		err := a.send()
		if err != nil {
			a.Ask()
			wait = a.again
		}
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) { // until somebody applies config/, which may be never
			wait = a.every
		}
		if err != nil && !failing {
			a.logger.Warnw(
				"asking for missed deliveries to be looked for failed and is repeated; apply config/ if ConfigMap "+Asks+" is not found or patch on it is forbidden",
				"error",
				err.Error(),
			)
		}
		failing = err != nil
		select {
		case <-stop:
			return
		case <-time.After(wait):
		}
	}
}

func (a *Asker) send() error {
	patch, err := json.Marshal(map[string]any{"data": map[string]string{key: time.Now().UTC().Format(time.RFC3339Nano)}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	_, err = a.client.Patch(ctx, Asks, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// Asked reports whether a ConfigMap named Asks holds an ask.
func Asked(asks *corev1.ConfigMap) bool { return asks.Data[key] != "" }
