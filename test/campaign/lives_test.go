// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// lives starts a process of the campaign that prints a text and exits by itself when the test
// allows it.
func lives(t *testing.T, s *stage, target, name, says string) (p *part, let func() error) {
	t.Helper()
	enough := filepath.Join(t.TempDir(), "enough")
	if err := syscall.Mkfifo(enough, 0o600); err != nil {
		t.Fatal(err)
	}
	return s.ours(target, shared.Cluster.Add(cluster.Process{
		Name: name, Path: "/bin/sh", Args: []string{"-c", "read line < " + enough + "; " + says},
		Ready: func(context.Context) error { return nil },
	})), func() error { return os.WriteFile(enough, []byte("enough\n"), 0o600) }
}

// A controller may exit when it cannot read its settings, also after its probe was answered, and
// for no other reason.
func TestControllerMayExitWithoutSettings(t *testing.T) {
	for words, want := range map[string]int{
		"Error reading ConfigMap config-logging": 0, "Error loading leader election configuration": 0,
		"Version check failed": 0, "the last words": 1,
	} {
		s := &stage{tally: newTally(), parts: map[string]*part{}}
		p, let := lives(t, s, controller1, "says-"+strings.Join(strings.Fields(words)[:2], "-"),
			"echo "+words+"; echo Failed to watch")
		if err := errors.Join(p.Start(t.Context()), let(), p.Wait(t.Context())); err != nil {
			t.Fatal(err)
		}
		p.died()
		if found := s.died(); len(found) > 0 != (want > 0) {
			t.Errorf("%q: found %v", words, found)
		}
	}
}

// An unexpected exit of a process is reported, with its last log lines; a kill is not.
func TestUnexpectedExitIsReported(t *testing.T) {
	s := &stage{tally: newTally(), parts: map[string]*part{}}
	p, let := lives(t, s, receiver0, "ends-by-itself", "echo the last words; exit 3")
	if err := errors.Join(p.Start(t.Context()), p.Kill(), p.Start(t.Context()), let()); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Poll(t.Context(), 10*time.Millisecond, func() error {
		if len(s.died()) == 0 {
			return errors.New("the exit is not reported")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	found := s.died()
	if len(found) != 1 || found[0].Invariant != unexpectedExit ||
		found[0].Message != "receiver 0 ended by itself\nthe last words" {
		t.Errorf("found %v, want that it ended by itself, once", found)
	}
}

// A receiver that does not start in time after its replacement becomes an endpoint anyway when it
// is ready: the restart does not count.
func TestLateReceiverBecomesEndpointAgain(t *testing.T) {
	once, up := filepath.Join(t.TempDir(), "once"), filepath.Join(t.TempDir(), "up")
	s := &stage{tally: newTally(), parts: map[string]*part{}, front: newFront()}
	defer s.front.server.Close()
	p := s.ours(receiver1, shared.Cluster.Add(cluster.Process{
		Name: "starts-once", Path: "/bin/sh",
		Args: []string{"-c", "mkdir " + once + " && touch " + up + " && exec sleep 600"},
		Ready: func(context.Context) error {
			_, err := os.Stat(up)
			return err
		},
	}))
	// the folder stays: the second process ends at once
	if err := errors.Join(p.Start(t.Context()), os.Remove(up)); err != nil {
		t.Fatal(err)
	}
	const address = "http://127.0.0.1:1"
	s.front.list(address)
	if s.replace(&installation.Process{URL: address}, p) {
		t.Error("a receiver that has not come up counts as replaced")
	}
	if at := s.front.choose().String(); at != address || len(s.front.endpoints) != 1 {
		t.Errorf("the endpoints are %v", s.front.endpoints)
	}
}

// The output of a Go program that panics, or that has a fatal error, is found in a log, and
// nothing else.
func TestPanicIsFoundInLog(t *testing.T) {
	for _, c := range []struct{ log, want string }{
		{`{"level":"info","msg":"all is well"}` + "\n", ""},
		{"a\npanic: assignment to entry in nil map\n\ngoroutine 1 [running]:\n", "panic: assignment to entry in nil map"},
		{"a\nfatal error: concurrent map writes\n", "fatal error: concurrent map writes"},
		{`{"level":"error","msg":"a fatal error: the service said so"}` + "\n", ""},
		{strings.Repeat("x", 1<<20) + "\npanic: late", "panic: late"},
	} {
		log := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(log, []byte(c.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := panicked(log); got != c.want {
			t.Errorf("found %q, want %q", got, c.want)
		}
	}
}
