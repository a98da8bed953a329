// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/faults/page"
)

// row is one shape of one row of docs/errors.md.
type row struct {
	// id is the row's name there, "K1".
	id string
	// when is what happened, for the page: a sentence without a full stop.
	when string
	// verb is what was asked for.
	verb fault.Verb
	// cause brings it about and returns the client's error.
	cause func(t *testing.T, w *environment) error
	class fault.Class
	// reason is what conditions and metrics say.
	reason string
	// wait is the known time, 0 where there is none.
	wait time.Duration
	// unknown: the request may have been applied.
	unknown bool
	// varies: the message depends on the moment at which a connection broke.
	varies bool
}

// want is how the row has to be classified.
func (r row) want() *fault.Error {
	return &fault.Error{Class: r.class, Reason: r.reason, RetryAfter: r.wait, Unknown: r.unknown}
}

// group is rows in the same state of the cluster.
type group struct {
	name string
	// enter brings the cluster into the state until the test ends; nil is a cluster that works.
	enter func(t *testing.T, w *environment)
	rows  []row
}

func groups() []group {
	return []group{
		{"", nil, slices.Concat(webhookRows(), refusalRows(), sizeRows(), serverErrorRows(), transportRows())},
		{"Tekton's webhook is away", webhookAway, awayRows()},
		{"no controller computes quotas", quotasUncounted, freshQuotaRows()},
		{"etcd has compacted", nil, compactedRows()},
		{"etcd stands still", etcdHangs, etcdHungRows()},
		{"etcd has no quorum", etcdWithoutMajority, noMajorityRows()},
		{"etcd is away", etcdAway, goneRows()},
		{"etcd is full", etcdFull, fullRows()},
		{"the API server stands still", serverHangs, serverHungRows()},
	}
}

// Every row of docs/errors.md has its class, reason and wait, with an error from a real API
// server, and the message of docs/errors.md. Webhooks that cannot be called are C1 and C2, an
// exhausted quota is C5.
func TestKubernetesRows(t *testing.T) {
	var mu sync.Mutex
	lines, all := map[string]page.Line{}, []string{}
	for _, g := range groups() {
		t.Run(g.name, func(t *testing.T) {
			if g.enter != nil {
				g.enter(t, shared)
			}
			t.Run("rows", func(t *testing.T) { // parallel subtests end before the state does
				for _, r := range g.rows {
					name := r.id + " " + r.when
					all = append(all, name)
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						got := classified(t, r)
						mu.Lock()
						defer mu.Unlock()
						lines[name] = page.Line{Row: r.id, When: r.when, Fault: got, Varies: r.varies}
					})
				}
			})
		})
	}
	checkLines(t, all, lines)
}

func classified(t *testing.T, r row) *fault.Error {
	t.Helper()
	err := r.cause(t, shared)
	if err == nil {
		t.Fatal("it worked")
	}
	got := fault.FromKube(r.verb, err)
	if diff := cmp.Diff(r.want(), got, cmpopts.IgnoreUnexported(fault.Error{}),
		cmpopts.IgnoreFields(fault.Error{}, "Message", "Remedy")); diff != "" {
		t.Errorf("%v\n(-want +got):\n%s", err, diff)
	}
	return got
}

// checkLines compares the page if all rows were met, and requires that there is each row.
func checkLines(t *testing.T, names []string, lines map[string]page.Line) {
	t.Helper()
	if len(lines) < len(names) || t.Failed() {
		return // only some were chosen, or one of them says what is wrong
	}
	var sorted []page.Line
	for n := 1; n <= 38; n++ {
		id, before := fmt.Sprintf("K%d", n), len(sorted)
		for _, name := range names {
			if strings.HasPrefix(name, id+" ") {
				sorted = append(sorted, lines[name])
			}
		}
		if len(sorted) == before {
			t.Errorf("no test has met row %s", id)
		}
	}
	page.Check(t, "Kubernetes", sorted)
}
