// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/test/installation"
)

// ladderNamespace begins the names of namespaces whose calls are refused on purpose.
const ladderNamespace = "ladder"

// rung is one right of a role: a verb on a resource.
type rung struct {
	installation.Right
	role  *ladderRole
	names []string
	// refused is what the API server said to a call without it, "" while there was none.
	refused string
	granted bool
	// held: it is granted when the test says so.
	held bool
}

// ladderRole is a Role, or a ClusterRole when namespace is empty.
type ladderRole struct{ namespace, name, account string }

// ladder is an installation that begins without any right and gets each one when a call was refused
// for want of it: what was never refused is never granted. So each right is taken away for real,
// and a call that needs it fails.
type ladder struct {
	*world
	mu    sync.Mutex
	rungs []*rung
	// faults are refused calls that no role of config/ allows.
	faults []string
}

// newLadder takes all rights of the world's accounts away and begins to grant what is refused.
func newLadder(t *testing.T, held ...installation.Right) *ladder {
	t.Helper()
	l := &ladder{world: newWorld(t, setup{system: ladderNamespace})}
	l.readRoles()
	for _, right := range held {
		l.rung(right).held = true
	}
	for _, role := range l.roles() {
		l.write(role)
	}
	audit, err := os.Open(shared.cluster.AuditLog())
	l.must(err)
	_, err = audit.Seek(0, io.SeekEnd)
	l.must(err)
	l.background(func(ctx context.Context) { l.climb(ctx, audit) })
	return l
}

// background runs f until the test ends, and waits for its end.
func (l *ladder) background(f func(context.Context)) {
	ctx, cancel := context.WithCancel(l.ctx)
	var running sync.WaitGroup
	running.Go(func() { f(ctx) })
	l.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// keep starts a process, and starts it again when it ends, as the kubelet does.
func (l *ladder) keep(p *installation.Process) *installation.Process {
	l.t.Cleanup(func() { _ = p.Kill() })
	l.background(func(ctx context.Context) {
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			if !p.Running() {
				_ = p.Start(ctx) // it ends when it may not read its configuration
			}
			<-tick.C
		}
	})
	return p
}

// climb reads the audit log and grants what was refused, until the world ends.
func (l *ladder) climb(ctx context.Context, audit *os.File) {
	defer func() { _ = audit.Close() }()
	lines, rest := bufio.NewReader(audit), ""
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		line, err := lines.ReadString('\n')
		rest += line
		if err == nil {
			l.read(rest)
			rest = ""
			continue
		}
		l.grant()
		<-tick.C
	}
}

// read takes one line of the audit log down.
func (l *ladder) read(line string) {
	var event auditEvent
	if !strings.Contains(line, l.Namespace) { // somebody else's
		return
	}
	if json.Unmarshal([]byte(line), &event) != nil || event.ObjectRef == nil || event.ResponseStatus.Code != 403 {
		return
	}
	account, ours := strings.CutPrefix(event.User.Username, "system:serviceaccount:"+l.Namespace+":")
	if !ours || !strings.Contains(event.ResponseStatus.Message, "cannot "+event.Verb) {
		return
	}
	ref := event.ObjectRef
	right := installation.Right{Account: account, Verb: event.Verb, Resource: strings.TrimSuffix(ref.APIGroup+"/"+ref.Resource+"/"+ref.Subresource, "/")}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.rungs { // roles of the namespace come before those of the cluster
		if r.Right == right && (r.role.namespace == "" || r.role.namespace == ref.Namespace) && (len(r.names) == 0 || slices.Contains(r.names, ref.Name)) {
			r.refused = cmp.Or(r.refused, event.ResponseStatus.Message)
			return
		}
	}
	l.faults = append(l.faults, "config/ does not allow what is needed: "+event.ResponseStatus.Message)
}

func (l *ladder) grant() {
	l.mu.Lock()
	defer l.mu.Unlock()
	var changed []*ladderRole
	for _, r := range l.rungs {
		if r.refused != "" && !r.granted && !r.held {
			r.granted = true
			changed = append(changed, r.role)
		}
	}
	slices.SortFunc(changed, func(a, b *ladderRole) int { return strings.Compare(a.name+a.namespace, b.name+b.namespace) })
	for _, role := range slices.Compact(changed) {
		l.write(role)
	}
}

// rung is that of a right.
func (l *ladder) rung(right installation.Right) *rung {
	l.t.Helper()
	for _, r := range l.rungs {
		if r.Right == right {
			return r
		}
	}
	l.t.Fatalf("config/ does not grant %v", right)
	return nil
}

// refuses waits until a call was refused for want of the right.
func (l *ladder) refuses(right installation.Right) {
	l.t.Helper()
	l.eventually(soon, fmt.Sprintf("%s is refused to %s %s", right.Account, right.Verb, right.Resource), func() error { return l.refused(right) })
}

// allows gives a right that was held.
func (l *ladder) allows(right installation.Right) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rung(right).held = false
}

// top requires that every right was refused once, or has a reason why not, and that nothing else
// gives what no role did.
func (l *ladder) top(unreached map[installation.Right]string) {
	l.t.Helper()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, fault := range l.faults {
			l.t.Error(fault)
		}
	}()
	l.eventually(soon, "every right is refused once", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		var never []string
		for _, r := range l.rungs {
			if r.refused == "" && unreached[r.Right] == "" {
				never = append(never, fmt.Sprintf("%s %s %s (%s)", r.Account, r.Verb, r.Resource, r.role.name))
			}
		}
		if len(never) != 0 {
			return fmt.Errorf("nothing failed without %s", strings.Join(never, ", "))
		}
		return nil
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	climbed := 0
	for _, r := range l.rungs {
		if r.granted {
			climbed++
		}
	}
	l.t.Logf("%d of %d rights were refused, then granted", climbed, len(l.rungs))
	for _, r := range l.rungs {
		if r.granted {
			continue
		}
		l.t.Logf("not reached: %s may %s %s: %s", r.Account, r.Verb, r.Resource, unreached[r.Right])
		if l.may(r) {
			l.t.Errorf("%s may %s %s without %s: the right is there twice", r.Account, r.Verb, r.Resource, r.role.name)
		}
		r.granted = true
		l.write(r.role)
		l.eventually(soon, "the role gives the right", func() error {
			if !l.may(r) {
				return errMissing
			}
			return nil
		})
	}
}
