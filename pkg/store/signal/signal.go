// SPDX-License-Identifier: Apache-2.0

// Package signal lets receivers tell controllers that deliveries may be undelivered: those that
// were answered with 503, and those that came while no receiver ran. The Git service's log says
// which (docs/adr/0030).
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
	// Ledger is the ConfigMap in which the controller stores how far it has read the log, and which
	// deliveries are undelivered.
	Ledger = "plumbline-missed-deliveries"
	// askEvery is the least time between two requests of one receiver, however many deliveries it
	// refuses: each costs the controller a read of the Git service's log.
	askEvery = 10 * time.Second
	// tryEvery is when a failed request is repeated. It fails while the API server is unavailable,
	// and succeeds as soon as deliveries can be stored again: that is the moment for redeliveries.
	tryEvery = time.Second
	// askTimeout limits one try.
	askTimeout = 5 * time.Second
	// key is the only key of Asks. Its value is a time, so that each request changes the ConfigMap
	// and reaches its watchers.
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

// Asker requests the controllers of its installation to look for undelivered webhooks. Safe for
// concurrent use.
type Asker struct {
	client configMapPatcher
	logger *zap.SugaredLogger
	more   chan struct{}
	// every and again are askEvery and tryEvery.
	every, again time.Duration
}

// NewAsker returns an Asker that does nothing before Run.
func NewAsker(client configMapPatcher, logger *zap.SugaredLogger) *Asker {
	return &Asker{client: client, logger: logger, more: make(chan struct{}, 1), every: askEvery, again: tryEvery}
}

// Ask says that a delivery may be undelivered. It does not block. Several calls make one request.
func (a *Asker) Ask() {
	select {
	case a.more <- struct{}{}:
	default:
	}
}

// Run sends requests until stop is closed. It repeats each one until the API server accepts it.
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
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) { // until config/ is applied, which may be never
			wait = a.every
		}
		if err != nil && !failing {
			a.logger.Warnw(
				"telling the controllers that webhooks may be undelivered failed, and is retried; apply config/ if ConfigMap "+Asks+" is not found or patch on it is forbidden",
				"error", err.Error(),
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

// Asked reports whether the ConfigMap Asks has a request.
func Asked(asks *corev1.ConfigMap) bool { return asks.Data[key] != "" }
