// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	asks "github.com/plumbline-ci/plumbline/pkg/store/signal"
)

const (
	// givenUpPrefix begins the keys of the ConfigMap that are of webhooks; a Repository's UID
	// follows. The other key is the ledger of GitHub's deliveries, which has up to 512 KiB of the 1
	// MiB.
	givenUpPrefix = "gitlab."
	// givenUpFor is how long it is remembered that a delivery is given up: GitLab lists an attempt
	// for seven days, and this is a day more.
	givenUpFor = 8 * 24 * time.Hour
	// maxGivenUp is of how many deliveries of one Repository that is remembered, the newest, at 40
	// bytes each; and maxGivenUpBytes of all Repositories. To forget one costs another Kubernetes
	// Event after the next start.
	maxGivenUp      = 50
	maxGivenUpBytes = 256 << 10
	// maxConflicts is how often the write is tried at once: the others that write the ConfigMap do
	// so every few seconds at most.
	maxConflicts = 3
	// writeEvery is the time between two writes, of which writesAtOnce are made at once: whoever
	// has the server says what is given up, and each write stores the whole ConfigMap anew.
	writeEvery   = 5 * time.Second
	writesAtOnce = 10
)

// givenUp remembers which deliveries were given up, so that no later process tells so again: the
// service's log still has them.
type givenUp struct {
	configMaps typedcorev1.ConfigMapInterface
	pace       *rate.Limiter
}

func newGivenUp(configMaps typedcorev1.ConfigMapInterface) givenUp {
	return givenUp{configMaps, rate.NewLimiter(rate.Every(writeEvery), writesAtOnce)}
}

// ends are deliveries, by the digest of their GUID, and until when they are remembered, in seconds
// since 1970.
type ends map[string]int64

func endOf(guid string) string {
	sum := sha256.Sum256([]byte(guid)) // whoever has the server chooses the GUID
	return hex.EncodeToString(sum[:12])
}

// of returns what is remembered of a Repository.
func (g givenUp) of(ctx context.Context, repository types.UID) (ends, error) {
	cm, err := g.read(ctx)
	if err != nil {
		return nil, err
	}
	return endsIn(cm.Data[givenUpPrefix+string(repository)]), nil
}

// add remembers more of a Repository, and drops what was remembered for long enough. It may be
// repeated.
func (g givenUp) add(ctx context.Context, repository types.UID, guids []string, now time.Time) (err error) {
	for range maxConflicts {
		cm, failed := g.read(ctx)
		if failed != nil || cm.Name == "" {
			return failed
		}
		cm = cm.DeepCopy()
		tidy(cm, now)
		known, key := ends{}, givenUpPrefix+string(repository)
		maps.Copy(known, endsIn(cm.Data[key]))
		for _, guid := range guids {
			known[endOf(guid)] = now.Add(givenUpFor).Unix()
		}
		text, unwritable := json.Marshal(known.newest())
		if unwritable != nil {
			return fmt.Errorf("writing down what is given up: %w", unwritable)
		}
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		if cm.Data[key] = string(text); size(cm) > maxGivenUpBytes {
			return nil // and it is told once more by the next process
		}
		_, err = g.configMaps.Update(ctx, cm, metav1.UpdateOptions{})
		if err == nil {
			return nil
		}
		if err = fault.FromKube(
			fault.VerbUpdate,
			fmt.Errorf("writing ConfigMap %s: %w", asks.Ledger, err),
		); !fault.Is(
			err,
			fault.Conflict,
		) {
			return err
		}
	}
	return err
}

// read returns an empty ConfigMap if there is none: config/ is not applied, and nothing is
// remembered.
func (g givenUp) read(ctx context.Context) (*corev1.ConfigMap, error) {
	cm, err := g.configMaps.Get(ctx, asks.Ledger, metav1.GetOptions{})
	if fault.Gone(err) {
		return &corev1.ConfigMap{}, nil
	}
	if err != nil {
		return nil, fault.FromKube(fault.VerbRead, fmt.Errorf("reading ConfigMap %s: %w", asks.Ledger, err))
	}
	return cm, nil
}

// endsIn is empty for what nobody here has written.
func endsIn(text string) (known ends) {
	if json.Unmarshal([]byte(text), &known) != nil {
		return nil
	}
	return known
}

// newest are the last maxGivenUp.
func (e ends) newest() ends {
	digests := slices.SortedFunc(
		maps.Keys(e),
		func(a, b string) int { return cmp.Or(cmp.Compare(e[b], e[a]), cmp.Compare(a, b)) },
	)
	for _, digest := range digests[min(len(digests), maxGivenUp):] {
		delete(e, digest)
	}
	return e
}

// tidy drops what was remembered for long enough, of Repositories that are gone as well.
func tidy(cm *corev1.ConfigMap, now time.Time) {
	for key, text := range cm.Data {
		if !strings.HasPrefix(key, givenUpPrefix) {
			continue
		}
		known := endsIn(text)
		maps.DeleteFunc(known, func(_ string, until int64) bool { return until < now.Unix() })
		if kept, err := json.Marshal(known); err == nil && len(known) > 0 {
			cm.Data[key] = string(kept)
			continue
		}
		delete(cm.Data, key)
	}
}

// size is what is remembered of all Repositories, in bytes.
func size(cm *corev1.ConfigMap) (n int) {
	for key, text := range cm.Data {
		if strings.HasPrefix(key, givenUpPrefix) {
			n += len(key) + len(text)
		}
	}
	return n
}
