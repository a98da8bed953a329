// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Limit is the memory that a process may have. A process that takes more is killed: by the kernel
// in a control group (KindCgroup), or, where none can be made, by Go's runtime, which ends when
// RLIMIT_DATA gives it no more heap (KindData).
type Limit struct {
	Kind  string
	Bytes int64
	group string // its directory
}

// The kinds of a Limit.
const (
	KindCgroup = "cgroup"
	KindData   = "RLIMIT_DATA"
)

// controllers are where control groups of memory are made, and the file that limits one: version 1,
// then 2.
func controllers() [][2]string {
	return [][2]string{{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"}}
}

// NewLimit makes a limit for one process; name is unique on this machine as long as it lives.
// Release removes it.
func NewLimit(name string, bytes int64) *Limit {
	for _, c := range controllers() {
		group := filepath.Join(c[0], fmt.Sprintf("plumbline-test-%d-%s", os.Getpid(), name))
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		if os.WriteFile(filepath.Join(group, c[1]), []byte(strconv.FormatInt(bytes, 10)), 0o600) == nil {
			return &Limit{Kind: KindCgroup, Bytes: bytes, group: group}
		}
		_ = os.Remove(group)
	}
	return &Limit{Kind: KindData, Bytes: bytes}
}

// Wrap returns the command that runs another one below the limit, under the process id that it is
// started with.
func (l *Limit) Wrap(path string, args []string) (string, []string) {
	script, value := `ulimit -d "$0" && exec "$@"`, strconv.FormatInt(l.Bytes>>10, 10)
	if l.Kind == KindCgroup {
		script, value = `echo $$ > "$0" && exec "$@"`, filepath.Join(l.group, "cgroup.procs")
	}
	return "/bin/sh", append([]string{"-c", script, value, path}, args...)
}

// Killed returns how often the kernel killed a process above the limit; RLIMIT_DATA counts
// nothing.
func (l *Limit) Killed() int {
	for _, file := range []string{"memory.oom_control", "memory.events"} {
		data, err := os.ReadFile(filepath.Join(l.group, file))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if count, found := strings.CutPrefix(line, "oom_kill "); found {
				n, _ := strconv.Atoi(strings.TrimSpace(count))
				return n
			}
		}
	}
	return 0
}

// Release removes the limit once its process is gone.
func (l *Limit) Release() {
	if l.group != "" {
		_ = os.Remove(l.group)
	}
}

// The fields of Memory: what a process has now, and the most that it had.
const (
	Resident = "VmRSS"
	Peak     = "VmHWM"
)

// Memory is a field of the process's status, in bytes.
func (p *Process) Memory(field string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, field+":"); found {
			kilobytes, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("%s has no %s: it has ended", p.Name(), field)
}

// ContainerMemory is limits.memory of a component's Deployment in config/.
func ContainerMemory(component string) (int64, error) {
	deployment, err := Deployment(product + "-" + component)
	if err != nil {
		return 0, err
	}
	return deployment.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value(), nil
}
