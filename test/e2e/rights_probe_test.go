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

// rightsNamespace is the prefix of namespaces whose calls are refused on purpose.
const rightsNamespace = "ladder"

// probedRight is one right of a role: a verb on a resource.
type probedRight struct {
	installation.Right
	role  *probedRole
	names []string
	// refused is the API server's answer to a call without it, "" before such a call.
	refused string
	granted bool
	// held is a right that is granted when the test says so.
	held bool
}

// probedRole is a Role, or a ClusterRole when namespace is empty.
type probedRole struct{ namespace, name, account string }

// rightsProbe is an installation that starts without any right and gets each one after a call was
// refused for lack of it. A right whose lack was never noticed is never granted. So each right is
// missing once, and a call that needs it fails.
type rightsProbe struct {
	*environment
	mu     sync.Mutex
	rights []*probedRight
	// faults are refused calls that no role of config/ allows.
	faults []string
}

// newRightsProbe removes all rights of the environment's accounts and starts to grant what is
// refused.
func newRightsProbe(t *testing.T, held ...installation.Right) *rightsProbe {
	t.Helper()
	l := &rightsProbe{environment: newEnvironment(t, setup{system: rightsNamespace})}
	l.readRoles()
	for _, right := range held {
		l.rightOf(right).held = true
	}
	for _, role := range l.roles() {
		l.write(role)
	}
	audit, err := os.Open(shared.cluster.AuditLog())
	l.must(err)
	l.must(errOf(audit.Seek(0, io.SeekEnd)))
	l.background(func(ctx context.Context) { l.grantRefused(ctx, audit) })
	return l
}

// background runs f until the test ends, and waits for its end.
func (l *rightsProbe) background(f func(context.Context)) {
	ctx, cancel := context.WithCancel(l.ctx)
	var running sync.WaitGroup
	running.Go(func() { f(ctx) })
	l.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// keepRunning starts a process, and restarts it when it ends, as the kubelet does.
func (l *rightsProbe) keepRunning(p *installation.Process) *installation.Process {
	l.t.Cleanup(func() { _ = p.Kill() })
	l.background(func(ctx context.Context) {
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			if !p.Running() {
				_ = p.Start(ctx) // it ends when it has no right to read its configuration
			}
			<-tick.C
		}
	})
	return p
}

// grantRefused reads the audit log and grants what was refused, until the environment ends.
func (l *rightsProbe) grantRefused(ctx context.Context, audit *os.File) {
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

// read evaluates one line of the audit log.
func (l *rightsProbe) read(line string) {
	var event auditEvent
	if !strings.Contains(line, l.Namespace) { // of another installation
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
	right := installation.Right{Account: account, Verb: event.Verb,
		Resource: strings.TrimSuffix(ref.APIGroup+"/"+ref.Resource+"/"+ref.Subresource, "/")}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.rights { // roles of the namespace come before those of the cluster
		if r.Right == right && (r.role.namespace == "" || r.role.namespace == ref.Namespace) &&
			(len(r.names) == 0 || slices.Contains(r.names, ref.Name)) {
			r.refused = cmp.Or(r.refused, event.ResponseStatus.Message)
			return
		}
	}
	l.faults = append(l.faults, "config/ does not allow what is needed: "+event.ResponseStatus.Message)
}

func (l *rightsProbe) grant() {
	l.mu.Lock()
	defer l.mu.Unlock()
	var changed []*probedRole
	for _, r := range l.rights {
		if r.refused != "" && !r.granted && !r.held {
			r.granted = true
			changed = append(changed, r.role)
		}
	}
	slices.SortFunc(changed, func(a, b *probedRole) int { return strings.Compare(a.name+a.namespace, b.name+b.namespace) })
	for _, role := range slices.Compact(changed) {
		l.write(role)
	}
}

// rightOf returns the probed right.
func (l *rightsProbe) rightOf(right installation.Right) *probedRight {
	l.t.Helper()
	for _, r := range l.rights {
		if r.Right == right {
			return r
		}
	}
	l.t.Fatalf("config/ does not grant %v", right)
	return nil
}

// awaitRefusal waits until a call was refused for lack of the right.
func (l *rightsProbe) awaitRefusal(right installation.Right) {
	l.t.Helper()
	l.eventually(soon, fmt.Sprintf("%s is refused to %s %s", right.Account, right.Verb, right.Resource),
		func() error { return l.refused(right) })
}

// allow grants a right that was held back.
func (l *rightsProbe) allow(right installation.Right) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rightOf(right).held = false
}

// requireComplete requires that every right was refused once, or has a reason why not, and that
// nothing grants a right outside of the roles.
func (l *rightsProbe) requireComplete(unreached map[installation.Right]string) {
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
		for _, r := range l.rights {
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
	for _, r := range l.rights {
		if r.granted {
			climbed++
		}
	}
	l.t.Logf("%d of %d rights were refused, then granted", climbed, len(l.rights))
	for _, r := range l.rights {
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
