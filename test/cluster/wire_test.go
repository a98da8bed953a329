// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"io"
	"net"
	"testing"
)

// Data passes through a wire both ways until it is cut. Then open connections end, and new ones
// are not answered.
func TestWireIsCutAndRestored(t *testing.T) {
	t.Parallel()
	echo, err := net.Listen("tcp", loopback(0))
	must(t, err)
	defer func() { _ = echo.Close() }()
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn) }()
		}
	}()
	w, err := newWire(echo.Addr().String())
	must(t, err)
	defer w.close()
	open := dialled(t, w)
	if err := echoed(open); err != nil {
		t.Fatalf("an open wire: %v", err)
	}
	w.Cut()
	if echoed(open) == nil {
		t.Error("a connection goes on after the cut")
	}
	if echoed(dialled(t, w)) == nil {
		t.Error("a new connection is answered after the cut")
	}
	w.Restore()
	if err := echoed(dialled(t, w)); err != nil {
		t.Errorf("a restored wire: %v", err)
	}
}

func dialled(t *testing.T, w *Wire) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", loopback(w.port()))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// echoed returns nil if the sent data comes back.
func echoed(conn net.Conn) error {
	if _, err := conn.Write([]byte("x")); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, 1))
	return err
}
