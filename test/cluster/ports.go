// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Ports are taken below the range from which Linux picks the source ports of
// outgoing connections (net.ipv4.ip_local_port_range, 32768 and up), so that a
// killed process finds its port still free when it is started again.
const (
	firstPort = 20000
	lastPort  = 32000
)

// ports hands out loopback ports. Each is held by a lock on a file until close,
// so that clusters of several processes on one machine never share one.
type ports struct {
	locks []*os.File
}

func (p *ports) take() (int, error) {
	dir := filepath.Join(os.TempDir(), "plumbline-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, fmt.Errorf("reserving a port: %w", err)
	}
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		lock, err := tryPort(dir, port)
		if err != nil {
			return 0, err
		}
		if lock == nil {
			continue
		}
		p.locks = append(p.locks, lock)
		return port, nil
	}
	return 0, errors.New("reserving a port: none is free")
}

// tryPort returns nil when another process holds or uses the port.
func tryPort(dir string, port int) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, fmt.Errorf("reserving a port: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, lock.Close()
	}
	// All addresses: Tekton's processes listen on every one of them.
	listener, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
	if err != nil {
		return nil, lock.Close()
	}
	return lock, listener.Close()
}

func (p *ports) close() {
	for _, lock := range p.locks {
		_ = lock.Close()
	}
	p.locks = nil
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
