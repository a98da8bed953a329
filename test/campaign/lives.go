// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

// unexpectedExit is the name of a violation outside of docs/codes.md: a process of ours exited
// without the campaign, or panicked.
const unexpectedExit = "alive"

// part is a process that one act at a time disturbs.
type part struct {
	*cluster.Part
	free chan struct{} // holds a value while no act disturbs it

	mu   sync.Mutex
	life *life // the last one
	// died is called after an unexpected exit; nil for a process that is not ours. patient: the
	// process may exit during its start, because it cannot read its settings (a controller while
	// the API server is down, whose probes are answered before it has read them).
	died    func()
	patient bool
}

// life is a process from its start to its end.
type life struct{ ended bool } // by the campaign

func newPart(p *cluster.Part) *part {
	all := &part{Part: p, free: make(chan struct{}, 1), life: &life{}}
	all.free <- struct{}{}
	return all
}

// ends records that the campaign ends the process.
func (p *part) ends() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.life.ended = true
}

// unexpected reports whether a process exited without the campaign.
func (p *part) unexpected(l *life) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !l.ended
}

// Kill kills it.
func (p *part) Kill() error {
	p.ends()
	return p.Part.Kill()
}

// Terminate sends SIGTERM.
func (p *part) Terminate() error {
	p.ends()
	return p.Part.Terminate()
}

// Start starts it, waits until it is ready, and watches until it ends.
func (p *part) Start(ctx context.Context) error {
	l := &life{}
	p.mu.Lock()
	p.life = l
	p.mu.Unlock()
	err := p.Part.Start(ctx)
	switch {
	case p.died == nil:
	case err == nil || p.Running() && !p.patient:
		go func() {
			if p.Wait(context.Background()) == nil && p.unexpected(l) {
				p.died()
			}
		}()
	case !p.Running() && !p.patient && p.unexpected(l):
		p.died()
	}
	return err
}

// ours is a process of Plumbline whose unexpected exit is a finding.
func (s *stage) ours(target string, p *cluster.Part) *part {
	all := newPart(p)
	all.patient = target == controller0 || target == controller1
	all.died = func() {
		if !all.patient || !withoutSettings(p.Log()) {
			s.recordExit(target+" ended by itself", p.Log())
		}
	}
	return all
}

// recordExit records that a process exited, and its last log lines.
func (s *stage) recordExit(what, log string) {
	const told = 15 // lines
	now, said := time.Now(), lastLines(log, told)
	s.deathsMu.Lock()
	defer s.deathsMu.Unlock()
	s.deaths = append(s.deaths, Finding{
		Violation: invariants.Violation{
			Invariant: unexpectedExit, Subject: log, Message: what + "\n" + strings.Join(said, "\n"),
		},
		Timeline: s.tally.lines(s.tally.between(now.Add(-around), now)),
	})
}

// withoutSettings reports whether the last lines of a log are those of knative's start when
// settings or a version cannot be read. Other parts of the process may have logged a few more
// lines before it exited.
func withoutSettings(log string) bool {
	const last = 5 // lines; a start says more than that
	said := strings.Join(lastLines(log, last), "\n")
	return slices.ContainsFunc([]string{"Error reading", "Error loading", "Version check failed"},
		func(words string) bool { return strings.Contains(said, words) })
}

// died returns the processes of ours that exited unexpectedly, or panicked and continued.
func (s *stage) died() []Finding {
	for target := range s.processes {
		if line := panicked(s.parts[target].Log()); line != "" {
			s.recordExit(fmt.Sprintf("the log of %s has %q", target, line), s.parts[target].Log())
		}
	}
	s.deathsMu.Lock()
	defer s.deathsMu.Unlock()
	return slices.Clone(s.deaths)
}

// panicked returns the first line of a log that reports a panic, or a fatal error of a Go program;
// "" if there is none.
func panicked(log string) string {
	data, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1+len(data))
	for lines.Scan() {
		if line := lines.Text(); strings.Contains(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return line
		}
	}
	return ""
}

// lastLines returns the last lines of a file.
func lastLines(path string, n int) []string {
	data, err := os.ReadFile(path)
	if err != nil {
		return []string{err.Error()}
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return all[max(0, len(all)-n):]
}
