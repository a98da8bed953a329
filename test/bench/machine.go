// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// Machine is what the figures depend on.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory string `json:"memory"`
	Kernel string `json:"kernel"`
	// Fsync is the median time of a write of 4 KiB and its fsync on the disk that etcd writes to,
	// in milliseconds.
	Fsync float64 `json:"fsyncMilliseconds"`
	// Versions are those of Plumbline (the commit), Go and the control plane's parts.
	Versions map[string]string `json:"versions"`
}

func (m Machine) String() string {
	var versions []string
	for _, of := range []string{"plumbline", "go", "kubernetes", "etcd", "tekton"} {
		versions = append(versions, of+" "+m.Versions[of])
	}
	return fmt.Sprintf("%d × %s, %s of memory, Linux %s, a write of 4 KiB with fsync in %.2f ms; %s", m.Cores, m.CPU,
		m.Memory, m.Kernel, m.Fsync, strings.Join(versions, ", "))
}

// inspect reads the machine's facts; dir is on the disk to be measured. What cannot be read is left
// empty.
func inspect(dir string) (Machine, error) {
	m := Machine{Cores: runtime.NumCPU(), Versions: map[string]string{"go": runtime.Version()}}
	m.CPU = field("/proc/cpuinfo", "model name")
	if kibibytes, err := strconv.Atoi(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB")); err == nil {
		m.Memory = fmt.Sprintf("%.1f GiB", float64(kibibytes)/(1<<20))
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(release))
	}
	took, err := fsync(dir)
	if err != nil {
		return m, fmt.Errorf("measuring the disk: %w", err)
	}
	m.Fsync = milliseconds(took)
	root, err := cluster.Root()
	if err != nil {
		return m, err
	}
	git := exec.Command("git", "describe", "--always", "--dirty")
	git.Dir = root
	if out, err := git.Output(); err == nil {
		m.Versions["plumbline"] = strings.TrimSpace(string(out))
	}
	m.Versions["kubernetes"] = module(filepath.Join(root, "test/cluster/binaries/kubernetes"), "k8s.io/kubernetes")
	m.Versions["etcd"] = module(filepath.Join(root, "test/cluster/binaries/etcd"), "go.etcd.io/etcd/server/v3")
	m.Versions["tekton"] = module(filepath.Join(root, "test/cluster/binaries/tekton"), "github.com/tektoncd/pipeline")
	return m, nil
}

// field is the value of the first line "name: value" of a file in /proc.
func field(path, name string) string {
	data, _ := os.ReadFile(path)
	for line := range strings.Lines(string(data)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// module is the version of a module that the go.mod in dir asks for.
func module(dir, path string) string {
	data, _ := os.ReadFile(filepath.Join(dir, "go.mod"))
	for line := range strings.Lines(string(data)) {
		if words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require ")); len(words) >= 2 &&
			words[0] == path {
			return words[1]
		}
	}
	return ""
}

// fsync is the median of some writes.
func fsync(dir string) (time.Duration, error) {
	const writes, size = 50, 4096
	file, err := os.CreateTemp(dir, "fsync-")
	if err != nil {
		return 0, err
	}
	defer func() {
		_ = file.Close()
		_ = os.Remove(file.Name())
	}()
	var all []time.Duration
	for range writes {
		begin := time.Now()
		if _, err := file.Write(make([]byte, size)); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
		all = append(all, time.Since(begin))
	}
	return installation.Percentile(all, 50), nil
}
