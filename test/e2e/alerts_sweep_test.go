// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/tombstone"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// stalled is a controller whose sweep may not go on from its first pass.
func stalled() condition {
	var refused *cluster.Armed
	return condition{
		sentence: "the sweep cannot list payloads", setup: setup{receivers: 1},
		alerts: map[string]movement{"PlumblineSweepStalled": stands},
		prepare: func(w *world) {
			p, err := w.Controller(w.ctx, true)
			w.must(err)
			refused = p.Proxy.Add(cluster.Rule{Match: func(c cluster.Call) bool { return c.Is("list", "eventpayloads") },
				Do: cluster.Fault(cluster.Unavailable())})
			w.start(p)
			w.controllers = []*installation.Process{p}
		},
		make: func(w *world) {
			w.hit(refused, 3)
		},
	}
}

// stands: there are series, and none of them has moved from 0.
func stands(q query, _, after page) error {
	for _, s := range q.Selectors {
		if n := len(after.match(s)); n == 0 {
			return fmt.Errorf("%v is not there", s)
		}
		if is := after.sum(s); is != 0 {
			return fmt.Errorf("%v is %v", s, is)
		}
	}
	return nil
}

// losesATombstone evicts an event whose page of tombstones is full.
func (w *world) losesATombstone() {
	_, delivery := w.push(map[string]string{"README.md": "nothing to run"})
	w.deliver(delivery, http.StatusAccepted)
	w.settled(soon)
	event := w.recordOf(delivery)
	w.evictable(event)
	until := time.Now().Add(time.Hour).Unix()
	var lines []string
	for n := range v1alpha1.MaxTombstones {
		lines = append(lines, fmt.Sprintf("push-github-%032x %s done %d", n, strings.Repeat("0", 16), until))
	}
	w.putPage(tombstone.PageOf(event.Name), lines...)
	w.startController(false)
}
