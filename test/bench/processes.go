// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// tick is the unit of CPU times in /proc: USER_HZ is 100 on every Linux.
const tick = 10 * time.Millisecond

// named is a process of Plumbline's with the name that the figures give it.
type named struct {
	name string
	*installation.Process
}

func (s *stage) processes() []named {
	return []named{{"receiver", s.receiver}, {"controller", s.controller}}
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

// usage is what had been used at one moment.
type usage struct {
	cpu   map[string]time.Duration // by process
	audit int64                    // bytes of the API server's audit log
	git   map[string]int           // calls of the Git service, by route
}

// use reads it.
func (s *stage) use() (usage, error) {
	u := usage{cpu: map[string]time.Duration{}, git: s.forge.Counts()}
	pids := map[string]int{
		"receiver": s.receiver.PID(), "controller": s.controller.PID(), "the benchmark and its Git service": os.Getpid(),
	}
	for _, part := range []string{cluster.Etcd, cluster.APIServer, cluster.TektonController, cluster.TektonWebhook} {
		pids[part] = s.cluster.Part(part).PID()
	}
	for name, pid := range pids {
		if pid == 0 { // it does not run in this section
			continue
		}
		used, err := cpuTime(pid)
		if err != nil {
			return u, err
		}
		u.cpu[name] = used
	}
	info, err := os.Stat(s.cluster.AuditLog())
	if err != nil {
		return u, err
	}
	u.audit = info.Size()
	return u, nil
}

// cpuTime is the time that a process has had a CPU, in user and kernel mode.
func cpuTime(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(data), ") ") // the name of the command, in parentheses, may have blanks
	fields := strings.Fields(after)
	const user, kernel = 11, 12 // fields 14 and 15 of proc(5), of which the first two are cut off
	if len(fields) <= kernel {
		return 0, fmt.Errorf("/proc/%d/stat has too few fields", pid)
	}
	a, errA := strconv.ParseInt(fields[user], 10, 64)
	b, errB := strconv.ParseInt(fields[kernel], 10, 64)
	return time.Duration(a+b) * tick, errors.Join(errA, errB)
}

// perEvent adds what was used since before, divided by the number of events: calls of the API
// server by process, verb and resource, calls of the Git service by route, and CPU time by process
// beside that of a bare client's PipelineRun.
func (s *stage) perEvent(out *Section, before usage, events int, bare map[string]time.Duration) error {
	after, calls, err := s.since(before)
	if err != nil {
		return err
	}
	git := map[string]int{}
	for route, n := range after.git {
		if n -= before.git[route]; n > 0 {
			git[route] = n
		}
	}
	out.calls("Kubernetes calls per event", calls, events)
	out.calls("Git service calls per event", git, events)
	ours := after.cpu["receiver"] - before.cpu["receiver"] + after.cpu["controller"] - before.cpu["controller"]
	out.add("CPU per event", "ms", milliseconds(ours)/float64(events), 0)
	for _, process := range slices.Sorted(maps.Keys(before.cpu)) {
		out.add("CPU per event: "+process, "ms", milliseconds(after.cpu[process]-before.cpu[process])/float64(events),
			milliseconds(bare[process]))
	}
	return nil
}

// since reads the use again, and the calls of the API server that came between.
func (s *stage) since(before usage) (after usage, calls map[string]int, err error) {
	if after, err = s.use(); err != nil {
		return after, nil, err
	}
	calls = map[string]int{}
	return after, calls, s.kubeCalls(before.audit, after.audit, func(c kubeCall) { calls[c.process+" "+c.kind()]++ })
}

// kubeCall is a line of the audit log.
type kubeCall struct {
	process string // receiver or controller
	Verb    string
	User    struct{ Username string }
	Ref     struct{ Resource, Subresource, Namespace string } `json:"objectRef"`
	At      time.Time                                         `json:"requestReceivedTimestamp"`
	Answer  struct{ Code int }                                `json:"responseStatus"`
}

// kind is such as "create gitevents".
func (c kubeCall) kind() string {
	if c.Ref.Subresource != "" {
		return c.Verb + " " + c.Ref.Resource + "/" + c.Ref.Subresource
	}
	return c.Verb + " " + c.Ref.Resource
}

// kubeCalls reads the calls of Plumbline's service accounts in a part of the audit log. Leases and
// watches go on whatever happens, and are left out.
func (s *stage) kubeCalls(from, to int64, see func(c kubeCall)) error {
	file, err := os.Open(s.cluster.AuditLog())
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	scanner := bufio.NewScanner(io.NewSectionReader(file, from, to-from))
	scanner.Buffer(nil, 1<<20)
	prefix := "system:serviceaccount:" + s.installation.Namespace + ":plumbline-"
	for scanner.Scan() {
		var c kubeCall
		if err := json.Unmarshal(scanner.Bytes(), &c); err != nil {
			continue // the part ends in the middle of a line
		}
		var ours bool
		if c.process, ours = strings.CutPrefix(c.User.Username, prefix); ours && c.Verb != "watch" &&
			c.Ref.Resource != "leases" && c.Ref.Resource != "" {
			see(c)
		}
	}
	return scanner.Err()
}
