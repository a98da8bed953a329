// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
)

const (
	// givenUpPrefix begins the keys of the ConfigMap that are of webhooks; a Repository's UID
	// follows. The ledger of GitHub's deliveries has up to 512 KiB of the 1 MiB.
	givenUpPrefix = "gitlab."
	// maxGivenUp is of how many deliveries of one Repository it is stored that they were given up,
	// the newest, at 40 bytes each; maxGivenUpBytes bounds all Repositories. One that is dropped
	// costs another Kubernetes Event after the next start.
	maxGivenUp      = 50
	maxGivenUpBytes = 256 << 10
	// writeEvery is the time between two writes, of which writesAtOnce are made at once: a user
	// with a server of its own decides what is given up, and each write stores the whole ConfigMap.
	writeEvery   = 5 * time.Second
	writesAtOnce = 10
	// remedy is for the owner of a delivery that is given up.
	remedy = "Its responses are at GitLab, in Settings, Webhooks, under Recent events: fix what they name, then press Resend Request there or push again."
)

// errFull is returned by a change that would exceed maxGivenUpBytes.
var errFull = errors.New("too many deliveries were given up")

// givenUp stores which deliveries were given up, so that the next process does not report them
// again: GitLab's log still has them.
type givenUp struct {
	store redelivery.Store
	rate  *rate.Limiter
}

func newGivenUp(configMaps typedcorev1.ConfigMapInterface) givenUp {
	return givenUp{redelivery.Store{ConfigMaps: configMaps}, rate.NewLimiter(rate.Every(writeEvery), writesAtOnce)}
}

// ends are deliveries that were given up, by the digest of their GUID, and until when that is
// stored, in seconds since 1970.
type ends map[string]int64

func endOf(guid string) string {
	sum := sha256.Sum256([]byte(guid)) // the server chooses the GUID
	return hex.EncodeToString(sum[:12])
}

// of returns what is stored of a Repository. Without the ConfigMap that is nothing.
func (g givenUp) of(ctx context.Context, repository types.UID) (ends, error) {
	cm, err := g.store.Read(ctx)
	if err != nil || cm == nil {
		return nil, err
	}
	return endsIn(cm.Data[givenUpPrefix+string(repository)]), nil
}

// add stores more of a Repository, and drops what has expired. It may be repeated.
func (g givenUp) add(ctx context.Context, repository types.UID, guids []string, now time.Time) error {
	cm, err := g.store.Read(ctx)
	if err != nil || cm == nil {
		return err
	}
	err = g.store.Update(ctx, cm, func(data map[string]string) error {
		dropExpired(data, now)
		known, key := ends{}, givenUpPrefix+string(repository)
		maps.Copy(known, endsIn(data[key]))
		for _, guid := range guids {
			known[endOf(guid)] = now.Add(redelivery.RememberedFor).Unix()
		}
		text, err := json.Marshal(known.newest())
		if err != nil {
			return fmt.Errorf("encoding what is given up: %w", err)
		}
		if data[key] = string(text); size(data) > maxGivenUpBytes {
			return errFull
		}
		return nil
	})
	if errors.Is(err, errFull) {
		return nil // the next process reports it once more
	}
	return err
}

// giveUp ends the requests for some deliveries. It tells the owner of the Repository, unless a
// process has done so before, and stores that afterwards: a process that ends in between reports it
// twice rather than never.
func (s *source) giveUp(ctx context.Context, v view, all []redelivery.Delivery, why string) error {
	w, repository := v.hook, v.target.repository
	if len(all) > 0 {
		known, err := s.givenUp.of(ctx, repository.UID)
		if err != nil {
			return err
		}
		for _, d := range all {
			w.end(d.GUID)
			w.expire(d.GUID, d.FirstID, false) // it may be read again together with another one
			if _, reported := known[endOf(d.GUID)]; reported || slices.Contains(w.unwritten, d.GUID) {
				continue
			}
			w.unwritten = append(w.unwritten, d.GUID)
			s.metrics.GaveUp(ctx)
			s.logger.Warnw("a delivery is given up", "repository", v.target.owner.String(), "delivery", d.GUID, "why", why)
			redelivery.ReportGivenUp(s.recorder, repository, d, why, remedy)
		}
	}
	w.unwritten = w.unwritten[max(0, len(w.unwritten)-maxGivenUp):]
	if len(w.unwritten) == 0 || !s.givenUp.rate.AllowN(s.clock.Now(), 1) {
		return nil // a later read stores it
	}
	if err := s.givenUp.add(ctx, repository.UID, w.unwritten, s.clock.Now()); err != nil {
		return err // the next read tries again
	}
	w.unwritten = nil
	return nil
}

// endsIn is empty for a text that the controller has not written.
func endsIn(text string) (known ends) {
	if json.Unmarshal([]byte(text), &known) != nil {
		return nil
	}
	return known
}

// newest are the last maxGivenUp.
func (e ends) newest() ends {
	digests := slices.SortedFunc(maps.Keys(e),
		func(a, b string) int { return cmp.Or(cmp.Compare(e[b], e[a]), cmp.Compare(a, b)) })
	for _, digest := range digests[min(len(digests), maxGivenUp):] {
		delete(e, digest)
	}
	return e
}

// dropExpired drops what was stored for long enough, also of Repositories that are gone.
func dropExpired(data map[string]string, now time.Time) {
	for key, text := range data {
		if !strings.HasPrefix(key, givenUpPrefix) {
			continue
		}
		known := endsIn(text)
		maps.DeleteFunc(known, func(_ string, until int64) bool { return until < now.Unix() })
		if left, err := json.Marshal(known); err == nil && len(known) > 0 {
			data[key] = string(left)
			continue
		}
		delete(data, key)
	}
}

// size is what is stored of all Repositories, in bytes.
func size(data map[string]string) (n int) {
	for key, text := range data {
		if strings.HasPrefix(key, givenUpPrefix) {
			n += len(key) + len(text)
		}
	}
	return n
}
