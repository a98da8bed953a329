// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// The node's addresses. The second one is outside of the cluster: the Git service has it.
const (
	nodeName     = "node1"
	nodeAddress  = "10.77.0.1"
	forgeHost    = "10.77.0.2"
	forgeAddress = forgeHost + ":8443"
	podNetwork   = "10.244.0.0/24"
	services     = "10.96.0.0/16"
	firstService = "10.96.0.1" // the API server's
)

// initialize is the stage of process 1. It returns when the stage inside ends; the kernel then
// kills every process of the node.
func initialize(dir string) error {
	if err := mount(dir); err != nil {
		return err
	}
	if err := network(); err != nil {
		return err
	}
	inside := exec.Command("/proc/self/exe", append(os.Args[1:len(os.Args)-1], stageInside)...)
	inside.Stdout, inside.Stderr = os.Stdout, os.Stderr
	inside.ExtraFiles = []*os.File{os.NewFile(3, "results")}
	inside.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := inside.Start(); err != nil {
		return fmt.Errorf("starting the stage %s: %w", stageInside, err)
	}
	_ = inside.ExtraFiles[0].Close()
	return reap(inside.Process.Pid)
}

// mount hides the folders where containerd, runc and network plugins leave files. The mounts end
// with the node.
func mount(dir string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	for _, folder := range []string{"/run", "/var/lib", "/var/log"} {
		if strings.HasPrefix(dir, folder+"/") {
			return fmt.Errorf("%s is below %s, which the node hides: set PLUMBLINE_CACHE", dir, folder)
		}
		if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", folder, err)
		}
	}
	for _, folder := range []string{"/run/lock", "/run/node", "/var/log/containers"} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	return syscall.Sethostname([]byte(nodeName))
}

// network gives the node an interface. It is one end of a pair, because not every kernel has dummy
// interfaces.
func network() error {
	for _, command := range []string{
		"link set lo up",
		"link add node0 type veth peer name node0p",
		"link set node0p up",
		"link set node0 up",
		"addr add " + nodeAddress + "/24 dev node0",
		"addr add " + forgeHost + "/24 dev node0",
		"route add default dev node0",
	} {
		if out, err := exec.Command("ip", strings.Fields(command)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", command, err, out)
		}
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600)
}

// reap waits for orphans of the node until the stage inside ends.
func reap(inside int) error {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err != nil && err != syscall.EINTR {
			return fmt.Errorf("waiting for processes: %w", err)
		}
		if pid == inside {
			return fmt.Errorf("the stage %s ended: %v", stageInside, status)
		}
	}
}
