// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// What a long campaign does at least. One that has done less says less than it seems to.
const (
	long          = 30 * time.Minute
	delivered     = 1500 // deliveries answered 2xx
	killedAtLeast = 50   // times each process
	hitAtLeast    = 10   // calls by each fault
)

// killable are the processes that the campaign kills.
func killable() []string {
	return []string{
		receiver0, receiver1, controller0, controller1, cluster.TektonWebhook, cluster.TektonController, cluster.APIServer,
		cluster.Etcd,
	}
}

// The names of what is counted.
func killsOf(target string) string { return killing + " " + target }

func apiHits(answer string) string { return "API server: " + answer }

func gitHits(service, answer string) string { return service + ": " + answer }

// wanted are the counts of kills and of faults, and the minimum of each.
func wanted() map[string]int {
	least := map[string]int{}
	for _, target := range killable() {
		least[killsOf(target)] = killedAtLeast
	}
	for _, answer := range apiAnswers() {
		least[apiHits(answer.name)] = hitAtLeast
	}
	for _, on := range []string{onGitHub, onGitLab} {
		for _, answer := range gitAnswers(on) {
			least[gitHits(on, answer.name)] = hitAtLeast
		}
	}
	return least
}

// Lacks returns a line for each thing that a schedule of this length has not done often enough. A
// short one has no minimum.
func (r Report) Lacks(lasts time.Duration) (lacks []string) {
	if lasts < long {
		return nil
	}
	taken := 0
	for what, n := range r.counts {
		if strings.HasPrefix(what, answered(2)) {
			taken += n
		}
	}
	if taken < delivered {
		lacks = append(lacks, fmt.Sprintf("%d deliveries are answered 2xx, not %d", taken, delivered))
	}
	for what, least := range wanted() {
		if n := r.counts[what]; n < least {
			lacks = append(lacks, fmt.Sprintf("%d of %q, not %d", n, what, least))
		}
	}
	for _, kind := range r.Unmade {
		lacks = append(lacks, "no process made the call: "+kind)
	}
	slices.Sort(lacks)
	return lacks
}
