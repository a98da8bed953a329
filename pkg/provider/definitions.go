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

// Our own limits on a definition directory: they bound the memory and the calls of one event.
const (
	// MaxFile is the bytes of one file.
	MaxFile = 1 << 20
	// MaxFiles is how many are read.
	MaxFiles = 1000
	maxTotal = 8 << 20 // bytes of all files: an event holds them twice, as they are and as what was read of them
	parallel = 4       // files read at once; G2 bounds what all events of a credential do at once
)

// MaxCompared is how many files GitHub lists of a comparison
// (https://docs.github.com/rest/commits/commits). What a push changed is read off the trees from
// there on, which know no renames; so does whoever answers in GitHub's place.
const MaxCompared = 300

// IsDefinition reports whether a file in a definition directory is read.
func IsDefinition(name string) bool {
	ext := path.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}

// ReadFiles reads the files of a directory, some at a time, sorts them by path and stops at the
// first error. What is more or larger than Plumbline reads is an Invalid fault that names the
// directory.
func ReadFiles(
	ctx context.Context,
	dir string,
	names []string,
	read func(context.Context, string) ([]byte, error),
) ([]git.File, error) {
	if len(names) > MaxFiles {
		return nil, fault.Invalidf("TooManyFiles", "%s holds %d YAML files: at most %d are read", dir, len(names), MaxFiles)
	}
	names = slices.Sorted(slices.Values(names))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	files := make([]git.File, len(names))
	gate := make(chan struct{}, parallel)
	var all sync.WaitGroup
	var caught panics.Catcher
	var total atomic.Int64
	for i, name := range names {
		gate <- struct{}{}
		all.Go(func() {
			defer func() { <-gate }()
			if ctx.Err() != nil {
				return
			}
			caught.Run(func() {
				data, err := read(ctx, name)
				if err == nil {
					err = CheckTotal(dir, int(total.Add(int64(len(data)))))
				}
				if err != nil {
					// The first cause wins; later ones are its consequences.
					cancel(err)
					return
				}
				files[i] = git.File{Path: name, Data: data}
			})
		})
	}
	all.Wait()
	caught.Again()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, context.Cause(ctx))
	}
	return files, nil
}

// CheckTotal refuses a directory whose files are too large together, in bytes.
func CheckTotal(dir string, total int) error {
	if total > maxTotal {
		return fault.Invalidf(
			"FilesTooLarge",
			"the YAML files in %s have more than %d bytes together: no more are read",
			dir,
			maxTotal,
		)
	}
	return nil
}

// CheckPath refuses what is not the path of a file below the repository's root.
func CheckPath(name string) error {
	if name == "" || path.IsAbs(name) || path.Clean(name) != name || strings.Contains(name, "..") {
		return fault.Invalidf("FileNotFound", "%q is not the path of a file below the repository's root", name)
	}
	return nil
}

// TooLarge is the fault of a file of more than MaxFile bytes.
func TooLarge(name string, size int) error {
	return fault.Invalidf("FileTooLarge", "%s has %d bytes: at most %d are read", name, size, MaxFile)
}

// NotDirectory is the fault of something else than a directory where definitions should be: a
// submodule, a symbolic link, or else a file, by its mode in Git.
func NotDirectory(name, mode string) error {
	what := map[string]string{
		ModeSubmodule: "is a submodule, and no submodule is followed: keep the pipelines in this repository",
		ModeLink:      "is a symbolic link, and no link is followed: keep the pipelines in a directory of that name",
	}[mode]
	return fault.Invalidf("NotADirectory", "%s %s", name, cmp.Or(what, "has been found but is not a directory"))
}
