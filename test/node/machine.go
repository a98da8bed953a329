// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// cgroupRoot is the cgroup of all pods, in each hierarchy.
const cgroupRoot = "plumbline-node"

// hierarchies returns where cgroups are mounted: the hierarchies of version 1, and that of version
// 2.
func hierarchies() (v1, v2 []string, err error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, nil, err
	}
	v1, v2 = cgroupMounts(string(mounts))
	return v1, v2, nil
}

func cgroupMounts(mounts string) (v1, v2 []string) {
	for line := range strings.Lines(mounts) {
		switch fields := strings.Fields(line); fields[2] {
		case "cgroup":
			v1 = append(v1, fields[1])
		case "cgroup2":
			v2 = append(v2, fields[1])
		}
	}
	return v1, v2
}

// controllers are those of version 2 that the kubelet needs.
func controllers() []string { return []string{"cpu", "cpuset", "memory", "io", "pids"} }

// missingCgroups says what this machine lacks for pods' cgroups; empty if nothing.
func missingCgroups() string {
	v1, v2, err := hierarchies()
	if err != nil || len(v1) > 0 {
		return "" // the kubelet names a controller of version 1 that is not mounted
	}
	if len(v2) == 0 {
		return "cgroups: mount -t cgroup2 cgroup2 /sys/fs/cgroup"
	}
	available, _ := os.ReadFile(filepath.Join(v2[0], "cgroup.controllers"))
	return missingControllers(string(available))
}

func missingControllers(available string) string {
	have := strings.Fields(available)
	lacks := slices.DeleteFunc(controllers(), func(name string) bool { return slices.Contains(have, name) })
	if len(lacks) == 0 {
		return ""
	}
	return "cgroup controllers " + strings.Join(lacks, ", ") + ": the kernel or the container of this shell does not have them"
}

// makeCgroups makes the pods' cgroup. Kubernetes uses version 1 if its controllers are mounted.
func makeCgroups() error {
	use, v2, err := hierarchies()
	if err != nil {
		return err
	}
	if len(use) == 0 {
		use = v2
		enable := "+" + strings.Join(controllers(), " +")
		if err := os.WriteFile(filepath.Join(v2[0], "cgroup.subtree_control"), []byte(enable), 0o600); err != nil {
			return fmt.Errorf("enabling cgroup controllers: %w", err)
		}
	}
	for _, hierarchy := range use {
		if err := os.Mkdir(filepath.Join(hierarchy, cgroupRoot), 0o755); err != nil {
			return fmt.Errorf("making a cgroup: %w", err)
		}
	}
	return nil
}

// removeCgroups removes the pods' cgroups, which is possible when no process is in them.
func removeCgroups(ctx context.Context) error {
	v1, v2, err := hierarchies()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for _, hierarchy := range slices.Concat(v1, v2) {
		top := filepath.Join(hierarchy, cgroupRoot)
		if err := cluster.Poll(ctx, 50*time.Millisecond, func() error { return removeTree(top) }); err != nil {
			return fmt.Errorf("removing cgroups: %w", err)
		}
	}
	return nil
}

// removeTree removes directories, the deepest first. The files of a cgroup go with it.
func removeTree(top string) error {
	var folders []string
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		return err
	})
	for _, folder := range slices.Backward(folders) {
		err = errors.Join(err, os.Remove(folder))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// snapshot lists what a node could leave: mounts, interfaces, files of programs, and processes that
// know the node's folder.
func snapshot(dir string) (list []string, err error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	list = slices.Collect(strings.Lines(string(mounts)))
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for _, i := range interfaces {
		list = append(list, "interface "+i.Name)
	}
	for _, pattern := range []string{"/run/*", "/var/lib/*", "/var/log/*", "/etc/*", "/opt/*", "/usr/libexec/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		list = append(list, files...)
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	for _, process := range processes {
		if line, err := os.ReadFile(process); err == nil && bytes.Contains(line, []byte(dir)) {
			list = append(list, process+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return list, nil
}

// added returns what is in the second list only.
func added(before, after []string) (more []string) {
	for _, entry := range after {
		if !slices.Contains(before, entry) {
			more = append(more, entry)
		}
	}
	return more
}

// capSysResource is a bit of capabilities(7). With it, a process may lower OOM scores.
const capSysResource = 24

// mayLowerOOMScore reports whether this process may give a container a lower OOM score than its
// own.
func mayLowerOOMScore(status string) bool {
	for line := range strings.Lines(status) {
		if bits, found := strings.CutPrefix(line, "CapEff:"); found {
			value, err := strconv.ParseUint(strings.TrimSpace(bits), 16, 64)
			return err == nil && value>>capSysResource&1 == 1
		}
	}
	return false
}

// hasAppArmor reports whether the kernel has AppArmor and profiles can be loaded.
func hasAppArmor() bool {
	enabled, err := os.ReadFile("/sys/module/apparmor/parameters/enabled")
	if err != nil || !bytes.HasPrefix(enabled, []byte("Y")) {
		return false
	}
	_, err = exec.LookPath("apparmor_parser")
	return err == nil
}
