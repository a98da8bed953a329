// SPDX-License-Identifier: Apache-2.0

// Package testcache keeps a cached result of "go test" true for tests that run the go command.
//
// Go answers "ok (cached)" while the test binary and the files that the test has opened are the
// same. It does not know the sources that a test compiles or lists with the go command, and what
// TestMain opens. Packages and Files name them, so that Go compares them too
// (https://pkg.go.dev/cmd/go, "Test packages").
package testcache

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// perFile prints, for a package of the module, its folder and what it embeds.
const perFile = `{{with .Module}}{{if .Main}}{{$.Dir}}{{range $.EmbedFiles}}{{"\n"}}{{$.Dir}}/{{.}}{{end}}{{end}}{{end}}`

// tracked has the state of each folder and file when it was tracked.
var tracked = struct {
	sync.Mutex
	states map[string]string
}{states: map[string]string{}}

// Packages makes go test run the calling tests again after a change in the packages, or in what
// they import from the module. root is the module's folder; packages are patterns of go list. Call
// it before the go command reads the sources.
func Packages(ctx context.Context, root string, packages ...string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("finding the module: %w", err)
	}
	command := exec.CommandContext(ctx, "go", append([]string{"list", "-deps", "-f", perFile}, packages...)...)
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("listing the sources of %s: %w", strings.Join(packages, " "), err)
	}
	inOtherModule := func(line string) bool { return line == "" }
	paths := slices.DeleteFunc(strings.Split(string(out), "\n"), inOtherModule)
	return Files(append(paths, filepath.Join(root, "go.mod"), filepath.Join(root, "go.sum"))...)
}

// Files is Packages for files, and for folders with the files in them but not in their folders.
func Files(paths ...string) error {
	states, err := read(paths)
	if err != nil {
		return err
	}
	tracked.Lock()
	defer tracked.Unlock()
	for path, state := range states {
		if _, known := tracked.states[path]; !known {
			tracked.states[path] = state
		}
	}
	return nil
}

// Finish writes the tracked files into go test's log, which otherwise has only what is opened while
// tests run. TestMain calls it after the last test. Go compares files as they are at the end. If
// one has changed since it was named, the result belongs to sources that are gone, and is not
// stored.
func Finish() error {
	tracked.Lock()
	defer tracked.Unlock()
	log := flag.Lookup("test.testlogfile")
	if log == nil || log.Value.String() == "" || len(tracked.states) == 0 {
		return nil // the result of a test binary that somebody runs is never stored
	}
	var lines strings.Builder
	for path := range tracked.states {
		_, _ = fmt.Fprintln(&lines, "open", path)
	}
	if states, err := read(slices.Collect(maps.Keys(tracked.states))); err != nil || !maps.Equal(states, tracked.states) {
		_, _ = fmt.Fprintln(&lines, "changed") // go test stores no result whose log it does not understand
	}
	file, err := os.OpenFile(log.Value.String(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("opening the log of go test: %w", err)
	}
	_, err = file.WriteString(lines.String())
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing the log of go test: %w", err)
	}
	return nil
}

// read returns the size and time of each file, and of each file of a folder.
func read(paths []string) (map[string]string, error) {
	states := map[string]string{}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("reading a source: %w", err)
		}
		states[path] = state(info)
		if !info.IsDir() {
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, fmt.Errorf("reading the folder of a package: %w", err)
		}
		for _, entry := range entries {
			if info, err := entry.Info(); err == nil && !info.IsDir() {
				states[path] += "\n" + state(info)
			}
		}
	}
	return states, nil
}

func state(info fs.FileInfo) string {
	return fmt.Sprint(info.Name(), " ", info.Size(), " ", info.ModTime().UnixNano())
}
