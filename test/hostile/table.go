// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// MaxRatio is how many times the quiet p99 until the result the attacked one may be.
	MaxRatio = 3
	// MaxEtcd is by how many bytes the attacker's namespace may make etcd grow: its quarter of
	// open-payloads-mebibytes (128 MiB), and half as much again for the events themselves, their
	// plans and old revisions.
	MaxEtcd = 192 << 20
)

// Ratio is by how much longer the tenant waited for the first check at p99, and for the result.
func (r Report) Ratio() (first, result float64) {
	return float64(r.Attacked.First.P99) / float64(max(r.Quiet.First.P99, 1)),
		float64(r.Attacked.Result.P99) / float64(max(r.Quiet.Result.P99, 1))
}

// Lost is how many of the tenant's pushes were not accepted or have no result.
func (r Report) Lost() int {
	return r.Quiet.Sent - min(r.Quiet.Accepted, r.Quiet.Successful) + r.Attacked.Sent - min(r.Attacked.Accepted,
		r.Attacked.Successful)
}

// String is some lines for people.
func (r Report) String() string {
	first, result := r.Ratio()
	lines := []string{
		fmt.Sprintf("  first check  quiet %s, attacked %s: p99 %.1f times", r.Quiet.First, r.Attacked.First, first),
		fmt.Sprintf("  result       quiet %s, attacked %s: p99 %.1f times", r.Quiet.Result, r.Attacked.Result, result),
		fmt.Sprintf(
			"  pushes       %d sent, %d answered 202, %d successful; %d deliveries sent again as the API server was slow",
			r.Quiet.Sent+r.Attacked.Sent, r.Quiet.Accepted+r.Attacked.Accepted, r.Quiet.Successful+r.Attacked.Successful,
			r.Quiet.Again+r.Attacked.Again),
		fmt.Sprintf("  memory       receiver %s, controller %s, by %s", r.Receiver, r.Controller, r.Limit),
		fmt.Sprintf("  etcd         %d MiB more than in as much time of quiet", r.Etcd>>20),
		fmt.Sprintf("  ended        %d processes", len(r.Ended)),
	}
	lines = append(lines, r.Ended...)
	lines = append(lines, append(r.Quiet.Failures, r.Attacked.Failures...)...)
	return r.Sent + "\n" + strings.Join(lines, "\n")
}

func (t Times) String() string {
	return fmt.Sprintf("p50 %v p99 %v", t.P50.Round(time.Millisecond), t.P99.Round(time.Millisecond))
}

func (m Memory) String() string {
	return fmt.Sprintf("%d MiB idle, %d at most of %d", m.Idle>>20, m.Peak>>20, m.Limit>>20)
}

// Failed returns what the product did wrong, independent of the machine's speed; nil if nothing.
func (r Report) Failed() error {
	var errs []error
	if lost := r.Lost(); lost > 0 {
		errs = append(errs, fmt.Errorf("%d pushes of the tenant were lost: %s", lost,
			strings.Join(append(r.Quiet.Failures, r.Attacked.Failures...), "; ")))
	}
	if len(r.Ended) > 0 {
		errs = append(errs, fmt.Errorf("processes ended: %s", strings.Join(r.Ended, ", ")))
	}
	if r.Etcd > MaxEtcd {
		errs = append(errs, fmt.Errorf("etcd grew by %d MiB more than in quiet, want at most %d", r.Etcd>>20, MaxEtcd>>20))
	}
	return errors.Join(errs...)
}

// Slow returns an error when the tenant waited too much longer until its pushes had run and were
// reported. The first check is not judged: its p99 is that of the second slowest of 120 pushes, a
// tenth of a second in quiet, and varies by half from one minute to the next.
func (r Report) Slow() error {
	if _, result := r.Ratio(); result > MaxRatio {
		return fmt.Errorf("the tenant's p99 until the result is %.1f times that of quiet, want at most %d", result, MaxRatio)
	}
	return nil
}
