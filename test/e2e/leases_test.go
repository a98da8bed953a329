// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/installation"
)

// leases are the settings of leader election. Where a controller takes over from another one the
// leases are short. Everywhere else they are long: renewals of idle controllers take much CPU.
func (s setup) leases() [][3]string {
	const name = "plumbline-config-leader-election"
	lease, renew, retry := "60s", "40s", "15s"
	if s.controllers > 1 || s.standby {
		lease, renew, retry = "6s", "4s", "1s"
	}
	return [][3]string{
		{name, "buckets", "1"}, {name, "lease-duration", lease},
		{name, "renew-deadline", renew}, {name, "retry-period", retry},
	}
}

// kill kills a process. The leases of a controller would run out by themselves, after 15 s by
// default. Deleting them shortens that wait. The tests with a second controller wait for it.
func (w *world) kill(p *installation.Process) {
	w.t.Helper()
	w.must(p.Kill())
	w.must(w.endLeases(w.ctx))
}

// restart kills a process and starts it again.
func (w *world) restart(p *installation.Process) {
	w.t.Helper()
	w.kill(p)
	w.must(p.Start(w.ctx))
}

func (w *world) endLeases(ctx context.Context) error {
	return w.Kube.CoordinationV1().Leases(w.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}
