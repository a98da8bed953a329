// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
	"github.com/plumbline-ci/plumbline/pkg/store/signal"
)

// ledgerKey is the ledger's key in the ConfigMap.
const ledgerKey = "github.json"

// store keeps the ledger.
type store struct{ redelivery.Store }

// load returns the ledger and the ConfigMap that it is from. One that is empty or cannot be read
// begins when the ConfigMap was created, which is when Plumbline was installed.
func (s store) load(ctx context.Context) (ledger, *corev1.ConfigMap, error) {
	cm, err := s.Read(ctx)
	if err != nil {
		return ledger{}, nil, err
	}
	if cm == nil {
		return ledger{}, nil, fault.Operatorf(reasonLedgerMissing,
			"ConfigMap %s does not exist, so undelivered webhooks cannot be found: apply config/ again", signal.Ledger)
	}
	var l ledger
	if text := cm.Data[ledgerKey]; text == "" || json.Unmarshal([]byte(text), &l) != nil || l.Through.IsZero() {
		l = ledger{Through: cm.CreationTimestamp.Time}
	}
	return l, cm, nil
}

// save writes the ledger unless the ConfigMap has it already. Of two processes that have loaded the
// same ledger one wins, and the other one loads it again.
func (s store) save(ctx context.Context, l ledger, was *corev1.ConfigMap) error {
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("encoding the undelivered webhooks: %w", err)
	}
	return s.Update(ctx, was, func(data map[string]string) error {
		if data[ledgerKey] != was.Data[ledgerKey] {
			return fault.New(fault.Conflict, reasonConflict, errors.New("another process has written the ledger"))
		}
		data[ledgerKey] = string(text)
		return nil
	})
}
