// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// namespaces are those that the node has for itself.
const namespaces = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS |
	syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

// row is one line of the table.
type row struct {
	What, Seen string
	Took       time.Duration
	Failed     bool
}

func (r row) mark() string {
	if r.Failed {
		return "✗"
	}
	return "✓"
}

// outside is the first stage.
func outside(ctx context.Context, cache, dir string, s settings) error {
	if err := complete(); err != nil {
		return err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	unlock, err := onlyOne(cache)
	if err != nil {
		return err
	}
	defer unlock()
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	// Of a node that was killed together with its command.
	if err := errors.Join(removeCgroups(ctx), os.RemoveAll(dir)); err != nil {
		return err
	}
	if err := (&workshop{root: root, cache: cache, dir: dir}).build(ctx); err != nil {
		return err
	}
	rows, err := live(ctx, dir)
	if err != nil {
		return err
	}
	return conclude(rows, len(chosen(s.only)), dir)
}

// conclude prints the table. Logs are kept if a scenario failed.
func conclude(rows []row, scenarios int, dir string) error {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprint(table, "\n\twhat\tseen\ttime\n")
	failed := 0
	for _, r := range rows {
		seen, _, _ := strings.Cut(r.Seen, "\n")
		_, _ = fmt.Fprintf(table, "%s\t%s\t%.160s\t%.1f s\n", r.mark(), r.What, seen, r.Took.Seconds())
		if r.Failed {
			failed++
		}
	}
	_ = table.Flush()
	if played := len(rows) - 1; failed > 0 || played != scenarios {
		return fmt.Errorf("%d of %d scenarios were played, and %d rows failed; the logs are in %s/logs",
			played, scenarios, failed, dir)
	}
	return os.RemoveAll(dir)
}

// onlyOne makes sure that one node runs at a time: they share addresses and cgroups.
func onlyOne(cache string) (unlock func(), err error) {
	file, err := os.OpenFile(cache+"/lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(errors.New("another node runs on this machine"), file.Close())
	}
	return func() { _ = file.Close() }, nil
}

// live starts the node, collects the rows of its scenarios, kills it, and adds the row of that.
func live(ctx context.Context, dir string) ([]row, error) {
	before, err := snapshot(dir)
	if err != nil {
		return nil, err
	}
	if err := makeCgroups(); err != nil {
		return nil, err
	}
	results, sink, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	node := exec.Command("/proc/self/exe", append(os.Args[1:], stageInit)...)
	node.Stdout, node.Stderr, node.ExtraFiles = os.Stdout, os.Stderr, []*os.File{sink}
	// A session of its own: Ctrl-C reaches this stage only.
	node.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL, Setsid: true}
	fmt.Println("\nstarting the node")
	if err := node.Start(); err != nil {
		return nil, fmt.Errorf("starting the node: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = node.Process.Kill() })
	defer stop()
	_ = sink.Close()
	rows := collect(results)
	if os.Getenv("KEEP") == "1" && ctx.Err() == nil {
		fmt.Printf("\nThe node is left running (KEEP=1), until Ctrl-C. In another terminal:\n"+
			"  nsenter -t %d -n -m -p kubectl --kubeconfig %s/admin.kubeconfig get pods -A\n  ls %s/logs\n", node.Process.Pid, dir, dir)
		<-ctx.Done()
	}
	return append(rows, end(node, dir, before)), nil
}

// collect prints each row when it comes, until the stage inside closes its end.
func collect(results io.Reader) (rows []row) {
	decoder := json.NewDecoder(results)
	for {
		var r row
		if err := decoder.Decode(&r); err != nil {
			return rows // the end, or the node's death, which the number of rows shows
		}
		fmt.Printf("%s %6.1f s  %s: %s\n", r.mark(), r.Took.Seconds(), r.What, r.Seen)
		rows = append(rows, r)
	}
}

// end kills the node's first process and compares the machine with what it was.
func end(node *exec.Cmd, dir string, before []string) row {
	begin := time.Now()
	r := row{What: "the node is killed (SIGKILL to one process)"}
	err := node.Process.Kill()
	_ = node.Wait() // killed
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err = errors.Join(err, removeCgroups(ctx))
	after, failed := snapshot(dir)
	left := added(before, after)
	r.Took, r.Seen = time.Since(begin), "no process, mount, interface, cgroup or file is left"
	if err = errors.Join(err, failed); err != nil || len(left) > 0 {
		r.Failed, r.Seen = true, fmt.Sprintf("left: %v; %v", left, err)
	}
	return r
}
