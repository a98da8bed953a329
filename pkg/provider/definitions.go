// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/runtime/panics"
)

// Our own limits for a directory of definitions. They limit the memory and the calls of one event.
const (
	// MaxFile is the maximum size of one file in bytes.
	MaxFile = 1 << 20
	// MaxFiles is how many files are read.
	MaxFiles = 1000
	maxTotal = 8 << 20 // bytes of all files; an event holds them twice, raw and parsed
	parallel = 4       // files read at the same time; G2 limits the calls of all events of a credential
)

// MaxCompared is how many files GitHub lists of a comparison
// (https://docs.github.com/rest/commits/commits). For larger pushes the trees are compared instead,
// which do not show renames.
const MaxCompared = 300

// IsDefinition reports whether a file in a directory of definitions is read.
func IsDefinition(name string) bool {
	ext := path.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}

// ReadFiles reads the files of a directory, some at the same time, and sorts them by path. After an
// error it begins no other read. Of several errors it returns that of the first path, the same in
// each attempt. Too many or too large files are an Invalid fault that names the directory.
func ReadFiles(
	ctx context.Context, dir string, names []string, read func(context.Context, string) ([]byte, error),
) ([]git.File, error) {
	if len(names) > MaxFiles {
		return nil, fault.Invalidf(reasonTooManyFiles, "%s holds %d YAML files: at most %d are read",
			dir, len(names), MaxFiles)
	}
	names = slices.Sorted(slices.Values(names))
	files, errs := make([]git.File, len(names)), make([]error, len(names))
	gate := make(chan struct{}, parallel)
	var all sync.WaitGroup
	var caught panics.Catcher
	var total atomic.Int64
	var failed atomic.Bool
	for i, name := range names {
		if gate <- struct{}{}; failed.Load() || ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-gate }()
			caught.Run(func() {
				data, err := read(ctx, name)
				if err == nil {
					err = CheckTotal(dir, int(total.Add(int64(len(data)))))
				}
				if err != nil {
					errs[i] = err
					failed.Store(true)
				}
				files[i] = git.File{Path: name, Data: data}
			})
		})
	}
	all.Wait()
	caught.Again()
	if err := cmp.Or(append(errs, context.Cause(ctx))...); err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, err)
	}
	return files, nil
}

// CheckTotal refuses a directory whose files are too large together; total is in bytes.
func CheckTotal(dir string, total int) error {
	if total > maxTotal {
		return fault.Invalidf(reasonFilesTooLarge, "the YAML files in %s have more than %d bytes together: no more are read",
			dir, maxTotal)
	}
	return nil
}

// CheckPath refuses a text that is not the path of a file below the repository's root.
func CheckPath(name string) error {
	if name == "" || path.IsAbs(name) || path.Clean(name) != name || strings.Contains(name, "..") {
		return fault.Invalidf(reasonFileNotFound, "%q is not the path of a file below the repository's root", name)
	}
	return nil
}

// TooLarge returns the fault of a file of more than MaxFile bytes.
func TooLarge(name string, size int) error {
	return fault.Invalidf(reasonFileTooLarge, "%s has %d bytes: at most %d are read", name, size, MaxFile)
}

// NotDirectory returns the fault of a path that should be a directory of definitions but is a
// submodule, a symbolic link or a file, by its mode in Git.
func NotDirectory(name, mode string) error {
	what := map[string]string{
		ModeSubmodule: "is a submodule, and no submodule is followed: keep the pipelines in this repository",
		ModeLink:      "is a symbolic link, and no link is followed: keep the pipelines in a directory of that name",
	}[mode]
	return fault.Invalidf(reasonNotADirectory, "%s %s", name, cmp.Or(what, "has been found but is not a directory"))
}
