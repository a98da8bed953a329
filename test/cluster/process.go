// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// startLimit bounds how long a part may take to become ready when the caller's
// context allows more. Parts take about a second; the rest is for busy machines.
const startLimit = 90 * time.Second

// errExited is returned when a process ended during a wait for it.
var errExited = errors.New("the process exited")

// Part is one process of the cluster. Its methods may be called from any
// goroutine; it keeps its port and its data over restarts.
type Part struct {
	name  string
	path  string
	args  []string
	env   []string // added to a minimal environment
	log   string
	ready func(ctx context.Context) error // nil when the part can do its work
	spawn *spawner

	mu      sync.Mutex
	process *os.Process
	gone    chan struct{} // closed when process has been reaped
}

// Name is one of the constants Etcd, APIServer, and so on.
func (p *Part) Name() string { return p.name }

// Log is the path of the file with everything the process printed, over all its restarts.
func (p *Part) Log() string { return p.log }

// PID is the process id, or 0 when the part is not running.
func (p *Part) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return 0
	}
	return p.process.Pid
}

// Running reports whether the process exists; a paused one does.
func (p *Part) Running() bool { return p.PID() != 0 }

// Start starts the process on the port it always had and waits until it is
// ready, for at most 90 seconds. It is an error when it runs already.
func (p *Part) Start(ctx context.Context) error {
	gone, err := p.launch()
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	exited := false
	err = Poll(ctx, 30*time.Millisecond, func() error {
		select {
		case <-gone:
			exited = true
			return nil
		default:
			return p.ready(ctx)
		}
	})
	if exited {
		err = errExited
	}
	if err != nil {
		return fmt.Errorf("starting %s: %w; the end of %s:\n%s", p.name, err, p.log, tail(p.log))
	}
	return nil
}

// Restart kills the process when it runs, as Kill does, and starts it again.
func (p *Part) Restart(ctx context.Context) error {
	if err := p.Kill(); err != nil {
		return err
	}
	return p.Start(ctx)
}

// Kill sends SIGKILL and returns once the process is gone. Killing a part that
// does not run does nothing.
func (p *Part) Kill() error {
	p.mu.Lock()
	process, gone, running := p.process, p.gone, p.running()
	p.mu.Unlock()
	if !running {
		return nil
	}
	if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", p.name, err)
	}
	<-gone
	return nil
}

// Terminate sends SIGTERM and does not wait: Tekton's webhook, for one, serves
// on for 45 seconds. Use Wait to see the end.
func (p *Part) Terminate() error { return p.signal(syscall.SIGTERM) }

// Pause stops the process with SIGSTOP: its port accepts connections, nothing answers.
func (p *Part) Pause() error { return p.signal(syscall.SIGSTOP) }

// Continue ends a Pause.
func (p *Part) Continue() error { return p.signal(syscall.SIGCONT) }

// Wait returns when the process is gone or ctx ends.
func (p *Part) Wait(ctx context.Context) error {
	p.mu.Lock()
	gone, running := p.gone, p.running()
	p.mu.Unlock()
	if !running {
		return nil
	}
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the end of %s: %w", p.name, ctx.Err())
	}
}

func (p *Part) signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return fmt.Errorf("sending %s to %s: it does not run", sig, p.name)
	}
	if err := p.process.Signal(sig); err != nil {
		return fmt.Errorf("sending %s to %s: %w", sig, p.name, err)
	}
	return nil
}

// running needs p.mu.
func (p *Part) running() bool {
	if p.process == nil {
		return false
	}
	select {
	case <-p.gone:
		return false
	default:
		return true
	}
}

func (p *Part) launch() (gone <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		return nil, errors.New("it runs already")
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening its log: %w", err)
	}
	cmd := exec.Command(p.path, p.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = filepath.Dir(p.log)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, p.env...)
	// An own group keeps Ctrl-C in a terminal to us, so that we stop the parts
	// in order; the death signal is for when we are killed ourselves.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.spawn.run(cmd.Start); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	done := make(chan struct{})
	p.process, p.gone = cmd.Process, done
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		_ = log.Close()
		close(done)
	}()
	return done, nil
}

// spawner starts processes from one thread that lives as long as the cluster: Linux sends the
// parent-death signal when the starting thread ends, and Go ends threads at will.
type spawner struct {
	work chan func()
	quit chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{work: make(chan func()), quit: make(chan struct{})}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for {
			select {
			case f := <-s.work:
				f()
			case <-s.quit:
				return
			}
		}
	}()
	return s
}

func (s *spawner) run(f func() error) error {
	result := make(chan error, 1)
	select {
	case s.work <- func() { result <- f() }:
		return <-result
	case <-s.quit:
		return errors.New("the cluster is stopped")
	}
}

// stop ends the thread, and with it every process that still runs.
func (s *spawner) stop() { close(s.quit) }

// tail is the last part of a log, for an error message.
func tail(path string) string {
	const limit = 2000
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > limit {
		_, _ = file.Seek(-limit, io.SeekEnd)
	}
	data, _ := io.ReadAll(file)
	return string(bytes.TrimSpace(data))
}
