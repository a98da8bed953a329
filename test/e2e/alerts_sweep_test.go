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

// stalledSweep is a controller whose sweep cannot finish its first pass.
func stalledSweep() condition {
	var refused *cluster.Armed
	return condition{
		sentence: "the sweep cannot list payloads", setup: setup{receivers: 1},
		alerts: map[string]movement{"PlumblineSweepStalled": staysZero},
		prepare: func(env *environment) {
			p, err := env.Controller(env.ctx, true)
			env.must(err)
			refused = p.Proxy.Add(cluster.Rule{Match: func(c cluster.Call) bool { return c.Is("list", "eventpayloads") },
				Do: cluster.Fault(cluster.Unavailable())})
			env.startProcess(p)
			env.controllers = []*installation.Process{p}
		},
		make: func(env *environment) {
			env.awaitHits(refused, 3)
		},
	}
}

// staysZero requires that there are series, and that all of them are still 0.
func staysZero(q query, _, after page) error {
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

// loseTombstone evicts an event whose page of tombstones is full.
func (env *environment) loseTombstone() {
	_, delivery := env.push(map[string]string{"README.md": "nothing to run"})
	env.deliver(delivery, http.StatusAccepted)
	env.awaitAllSettled(soon)
	event := env.recordOf(delivery)
	env.prepareEviction(event)
	until := time.Now().Add(time.Hour).Unix()
	var lines []string
	for n := range v1alpha1.MaxTombstones {
		lines = append(lines, fmt.Sprintf("push-github-%032x %s done %d", n, strings.Repeat("0", 16), until))
	}
	env.putTombstonePage(tombstone.PageOf(event.Name), lines...)
	env.startController(false)
}
