// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	asks "github.com/plumbline-ci/plumbline/pkg/store/signal"
)

// ledgerKey is the ledger's key in the ConfigMap. The others are of webhooks (package webhook).
const ledgerKey = "github.json"

// store keeps the ledger in a ConfigMap, which the installation creates.
type store struct {
	configMaps typedcorev1.ConfigMapInterface
}

// load returns the ledger and the ConfigMap that it is from. One that is empty or cannot be read
// begins when the ConfigMap was created, which is when Plumbline was installed: what was missed
// before is not its business.
func (s store) load(ctx context.Context) (ledger, *corev1.ConfigMap, error) {
	cm, err := s.configMaps.Get(ctx, asks.Ledger, metav1.GetOptions{})
	if fault.Gone(err) {
		return ledger{}, nil, fault.Operatorf(
			"LedgerMissing",
			"ConfigMap %s does not exist, so missed deliveries are not looked for: apply config/ again",
			asks.Ledger,
		)
	}
	if err != nil {
		return ledger{}, nil, fault.FromKube(fault.VerbRead, fmt.Errorf("reading ConfigMap %s: %w", asks.Ledger, err))
	}
	var l ledger
	if text := cm.Data[ledgerKey]; text == "" || json.Unmarshal([]byte(text), &l) != nil || l.Through.IsZero() {
		l = ledger{Through: cm.CreationTimestamp.Time}
	}
	return l, cm, nil
}

// maxConflicts is how often the write is tried at once while others write the ConfigMap: what
// GitLab's webhooks give up is in it, too, and whoever has such a server says how often.
const maxConflicts = 5

// save writes the ledger unless it is there already. Of two who have loaded the same one wins: the
// other begins anew.
func (s store) save(ctx context.Context, l ledger, was *corev1.ConfigMap) error {
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("writing down missed deliveries: %w", err)
	}
	loaded := was.Data[ledgerKey]
	for tries := 1; was.Data[ledgerKey] != string(text); tries++ {
		err := s.write(ctx, was.DeepCopy(), string(text))
		if err == nil {
			return nil
		}
		if !fault.Is(err, fault.Conflict) || tries == maxConflicts {
			return err
		}
		now, unread := s.configMaps.Get(ctx, asks.Ledger, metav1.GetOptions{})
		if unread != nil || now.Data[ledgerKey] != loaded {
			return err
		}
		was = now
	}
	return nil
}

func (s store) write(ctx context.Context, cm *corev1.ConfigMap, text string) error {
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
	cm.Data[ledgerKey] = text
	if _, err := s.configMaps.Update(ctx, cm, metav1.UpdateOptions{}); err != nil {
		return fault.FromKube(fault.VerbUpdate, fmt.Errorf("writing ConfigMap %s: %w", asks.Ledger, err))
	}
	return nil
}
