// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"math/rand/v2"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// What is done to a target. rolling is the rolling restart of the receivers.
const (
	killing, killingAtCall, pausing, cutting = "kill -9", "kill -9 at a call", "SIGSTOP", "partition"
	apiFault, gitFault, rolling              = "fault of the API server", "fault of the Git service", "rolling restart"
	limiting, killingInTurn                  = "change of a limit", "kill -9 of a controller at the call whose turn it is"
)

// The targets that are no part of the cluster. There are two of each process of ours.
const (
	receiver0, receiver1     = "receiver 0", "receiver 1"
	controller0, controller1 = "controller 0", "controller 1"
	onGitHub, onGitLab       = "GitHub", "GitLab"
)

// disturbing is a kind of disturbances: its weight, its longest duration, and its targets.
type disturbing struct {
	kind    string
	weight  int
	longest time.Duration
	targets []string
}

func (d disturbing) heavy() int { return d.weight }

// disturbance chooses a kind. Pauses and partitions may be longer than a lease, which is 6 s.
// Controllers are killed more often than receivers, because they have more state.
func disturbance(r *rand.Rand) disturbing {
	ours := []string{receiver0, receiver1, controller0, controller1}
	most := append(ours[:4:4], controller0, controller1)
	parts := []string{cluster.TektonWebhook, cluster.TektonController, cluster.APIServer, cluster.Etcd}
	return choose(r, []disturbing{
		{killing, 9, 2 * time.Second, most},
		{killing, 8, 2 * time.Second, parts},
		{killingAtCall, 8, 5 * time.Second, most},
		{pausing, 4, 9 * time.Second, ours},
		{pausing, 3, 6 * time.Second, parts},
		{cutting, 3, 9 * time.Second, ours},
		{cutting, 2, 6 * time.Second, parts},
		{apiFault, 9, 5 * time.Second, most},
		{gitFault, 9, 4 * time.Second, []string{onGitHub, onGitLab}},
		{limiting, 2, time.Second, limitables()[:2]}, // the other tenant has no limits
	})
}

// widest reports whether every process needs the target.
func widest(target string) bool { return target == cluster.APIServer || target == cluster.Etcd }
