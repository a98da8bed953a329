// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// need is a program that the node uses, and the Debian package that has it.
type need struct{ program, pack string }

func needs() []need {
	return []need{
		{"containerd", "containerd"},
		{"ctr", "containerd"},
		{"containerd-shim-runc-v2", "containerd"},
		{"runc", "runc"},
		{"ptp", "containernetworking-plugins"},
		{"host-local", "containernetworking-plugins"},
		{"loopback", "containernetworking-plugins"},
		{"nft", "nftables"},
		{"ip", "iproute2"},
		{"tar", "tar"},
		{"busybox", "busybox-static"},
	}
}

// cniFolders are where distributions and Kubernetes' documentation put network plugins.
func cniFolders() []string { return []string{"/usr/lib/cni", "/opt/cni/bin"} }

// find returns the path of a program or a network plugin.
func find(program string) (string, bool) {
	if path, err := exec.LookPath(program); err == nil {
		return path, true
	}
	for _, dir := range cniFolders() {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path, true
		}
	}
	return "", false
}

// missing has a line for each thing that the node lacks: what it is, and how to get it.
func missing(user int, find func(program string) (string, bool)) (lines []string) {
	if user != 0 {
		lines = append(lines, "root: the node makes namespaces and mounts; run it with sudo")
	}
	var packages []string
	for _, n := range needs() {
		if _, found := find(n.program); !found && !slices.Contains(packages, n.pack) {
			packages = append(packages, n.pack)
			lines = append(lines, fmt.Sprintf("%s: apt-get install --no-install-recommends %s", n.program, n.pack))
		}
	}
	return lines
}

// complete prints what is missing, if anything is.
func complete() error {
	lines := missing(os.Geteuid(), find)
	if line := missingCgroups(); line != "" {
		lines = append(lines, line)
	}
	for _, line := range lines {
		fmt.Fprintln(os.Stderr, "missing:", line)
	}
	if len(lines) > 0 {
		return errMissing
	}
	return nil
}
