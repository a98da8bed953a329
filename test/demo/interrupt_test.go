// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// standIn is a go that builds and runs, in the demo's place, a program that waits for Ctrl-C and
// then ends with 0.
const standIn = `#!/bin/sh
program=$PWD/dist/program
mkdir -p dist
printf '%s\n' '#!/bin/sh' 'trap "echo stopping; exit 0" INT' 'echo waiting' 'while :; do sleep 0.1; done' >"$program"
chmod 755 "$program"
case $1 in
build) mv "$program" "$3" ;;
run) exec "$program" ;;
esac
`

// Ctrl-C in a terminal reaches every process of the foreground group: make must not be one of them,
// for it fails then.
func TestMakeEndsQuietlyOnCtrlC(t *testing.T) {
	makefile, err := filepath.Abs("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"demo", "cluster"} {
		t.Run(target, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "go"), []byte(standIn), 0o700); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			command := exec.CommandContext(ctx, "make", "--no-print-directory", "-C", dir, "-f", makefile, "-o", "binaries",
				target)
			command.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "KEEP=1", "MAKEFLAGS=", "MAKELEVEL=")
			said, err := interrupted(command, "waiting")
			if err != nil || said != "^Cstopping\n" {
				t.Errorf("after Ctrl-C it says %q and ends with %v, want only that it stops, and no error", said, err)
			}
		})
	}
}

// interrupted runs a command in a terminal of its own, presses Ctrl-C once it has said a word, and
// returns what it says then and how it ends.
func interrupted(command *exec.Cmd, word string) (string, error) {
	screen, terminal, err := openTerminal()
	if err != nil {
		return "", err
	}
	defer func() { _ = screen.Close() }()
	command.Stdin, command.Stdout, command.Stderr = terminal, terminal, terminal
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := command.Start(); err != nil {
		return "", err
	}
	_ = terminal.Close() // the command's now
	var shown bytes.Buffer
	before, part := 0, make([]byte, 4096)
	for {
		n, err := screen.Read(part)
		shown.Write(part[:n])
		if before == 0 && strings.Contains(shown.String(), word+"\r\n") {
			before = shown.Len()
			if _, err := screen.WriteString("\x03"); err != nil {
				return "", err
			}
		}
		if err != nil { // no process has the terminal any more
			break
		}
	}
	return strings.ReplaceAll(shown.String()[before:], "\r\n", "\n"), command.Wait()
}

// openTerminal makes a pseudoterminal, as ptmx(4) describes it.
func openTerminal() (screen, terminal *os.File, err error) {
	screen, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	var number, unlock int32
	for request, argument := range map[uintptr]*int32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &unlock} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, screen.Fd(), request,
			uintptr(unsafe.Pointer(argument))); errno != 0 {
			return nil, nil, errno
		}
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	return screen, terminal, err
}
