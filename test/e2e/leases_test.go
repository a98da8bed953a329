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
func (env *environment) kill(p *installation.Process) {
	env.t.Helper()
	env.must(p.Kill())
	env.must(env.deleteLeases(env.ctx))
}

// restart kills a process and starts it again.
func (env *environment) restart(p *installation.Process) {
	env.t.Helper()
	env.kill(p)
	env.must(p.Start(env.ctx))
}

func (env *environment) deleteLeases(ctx context.Context) error {
	return env.Kube.CoordinationV1().Leases(env.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{})
}
