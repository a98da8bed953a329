// SPDX-License-Identifier: Apache-2.0

// Package waiting says what a process that has started waits for: in its log, and to probes.
package waiting

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
)

// retryEvery is how often what is missing is read again.
const retryEvery = 2 * time.Second

// List is what a process waits for, a line for each thing. It has no secrets and no addresses:
// anybody may read it who reaches the probes.
type List struct {
	log func(line string)

	mu    sync.Mutex
	lines []string
}

// NewList returns a List with these lines. It logs each later one once, when it is new.
func NewList(log func(line string), lines ...string) *List { return &List{log: log, lines: lines} }

// Set replaces the lines.
func (l *List) Set(lines ...string) {
	l.mu.Lock()
	before := l.lines
	l.lines = lines
	l.mu.Unlock()
	for _, line := range lines {
		if !slices.Contains(before, line) {
			l.log(line)
		}
	}
}

// Lines returns the lines, none if the process waits for nothing.
func (l *List) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// ForDefinitions waits until the API server serves what the component cannot work without. The
// error is that of ctx.
func (l *List) ForDefinitions(ctx context.Context, checker *preflight.Checker) error {
	return wait.PollUntilContextCancel(ctx, retryEvery, true, func(ctx context.Context) (bool, error) {
		awaited, err := checker.Awaited(ctx)
		lines := []string{"The API server does not answer"}
		if err == nil {
			lines = nil
		}
		for _, f := range awaited {
			lines = append(lines, f.String())
		}
		l.Set(lines...)
		return len(lines) == 0, nil
	})
}
