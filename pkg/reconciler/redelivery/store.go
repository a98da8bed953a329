// SPDX-License-Identifier: Apache-2.0

package redelivery

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/store/signal"
)

// maxConflicts is how often a write is tried at once while others write the ConfigMap. A user with
// a GitLab server of its own decides how often that happens.
const maxConflicts = 5

// Store is the ConfigMap of undelivered webhooks, which the installation creates. Each source has
// keys of its own there.
type Store struct {
	ConfigMaps typedcorev1.ConfigMapInterface
}

// Read returns the ConfigMap, nil if there is none.
func (s Store) Read(ctx context.Context) (*corev1.ConfigMap, error) {
	cm, err := s.ConfigMaps.Get(ctx, signal.Ledger, metav1.GetOptions{})
	if fault.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.FromKube(fault.VerbRead, fmt.Errorf("reading ConfigMap %s: %w", signal.Ledger, err))
	}
	return cm, nil
}

// Update writes what change makes of the data of the ConfigMap, unless that is the same. After a
// conflict it reads the ConfigMap and changes that. An error of change ends it.
func (s Store) Update(ctx context.Context, was *corev1.ConfigMap, change func(data map[string]string) error) error {
	for tries := 1; ; tries++ {
		cm := was.DeepCopy()
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		if err := change(cm.Data); err != nil || maps.Equal(cm.Data, was.Data) {
			return err
		}
		_, err := s.ConfigMaps.Update(ctx, cm, metav1.UpdateOptions{})
		if err == nil {
			return nil
		}
		err = fault.FromKube(fault.VerbUpdate, fmt.Errorf("writing ConfigMap %s: %w", signal.Ledger, err))
		if !fault.Is(err, fault.Conflict) || tries == maxConflicts {
			return err
		}
		var unread error
		if was, unread = s.Read(ctx); unread != nil || was == nil {
			return err
		}
	}
}
