// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// On a machine with both versions, the controllers are in the hierarchies of version 1.
func TestCgroupMountsAreOfBothVersions(t *testing.T) {
	const hybrid = "proc /proc proc rw 0 0\ncgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n" +
		"cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
	v1, v2 := cgroupMounts(hybrid)
	if !slices.Equal(v1, []string{"/sys/fs/cgroup/memory"}) || !slices.Equal(v2, []string{"/sys/fs/cgroup/unified"}) {
		t.Errorf("version 1 %v, version 2 %v", v1, v2)
	}
}

func TestMissingControllersAreNamed(t *testing.T) {
	for available, want := range map[string]string{
		"cpuset cpu io memory hugetlb pids rdma\n": "",
		"cpuset cpu io pids":                       "cgroup controllers memory: ",
		"":                                         "cgroup controllers cpu, cpuset, memory, io, pids: ",
	} {
		if got := missingControllers(available); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("with %q: %q, want %q", available, got, want)
		}
	}
}

// Directories of cgroups cannot be removed before those below them, and a tree that is gone is no
// error.
func TestRemoveTreeRemovesDeepestFirst(t *testing.T) {
	top := filepath.Join(t.TempDir(), cgroupRoot)
	if err := os.MkdirAll(filepath.Join(top, "pod", "container"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := removeTree(top); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(top); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", top, err)
	}
}
