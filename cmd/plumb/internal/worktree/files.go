// SPDX-License-Identifier: Apache-2.0

package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// Files returns the YAML files below a directory, at a commit or on disk, within the controller's
// limits and in its order. The text of a symbolic link is its target, as at the Git service.
// Ignored files do not count. Files that a sparse checkout leaves out do: they are read from the
// index.
func (t *Tree) Files(ctx context.Context, at, dir string) ([]git.File, error) {
	if at != OnDisk {
		return t.filesAt(ctx, at, dir)
	}
	if err := t.checkDirectory(dir); err != nil {
		return nil, err
	}
	indexed, err := t.index(ctx, dir)
	if err != nil {
		return nil, err
	}
	listed, err := t.git(ctx, "ls-files", "-z", "--others", "--exclude-standard", "--full-name", "--", dir)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", dir, err)
	}
	names, err := t.definitions(dir, indexed, fields(listed))
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return provider.ReadFiles(ctx, dir, names, func(ctx context.Context, name string) ([]byte, error) {
		if t.isFile(name) {
			return t.read(name)
		}
		return t.blob(ctx, name, indexed[name].id)
	})
}

// definitions are the files that an event would see: those of the index, and untracked ones.
func (t *Tree) definitions(dir string, indexed map[string]indexEntry, untracked []string) ([]string, error) {
	var names []string
	for _, name := range slices.Concat(slices.Collect(maps.Keys(indexed)), untracked) {
		isRepository := name == dir+"/"
		if isRepository || name == dir && indexed[name].mode == provider.ModeSubmodule {
			return nil, provider.NotDirectory(dir, provider.ModeSubmodule)
		}
		if provider.IsDefinition(name) && (t.isFile(name) || indexed[name].sparse) {
			names = append(names, name)
		}
	}
	return names, nil
}

// checkDirectory refuses a file in place of a directory. A missing directory is fine.
func (t *Tree) checkDirectory(dir string) error {
	info, err := os.Lstat(t.path(dir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("reading %s: %w", dir, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return provider.NotDirectory(dir, provider.ModeLink)
	case !info.IsDir():
		return provider.NotDirectory(dir, "")
	}
	return nil
}

// Ignored returns the YAML files below a directory on disk that Git ignores.
func (t *Tree) Ignored(ctx context.Context, dir string) ([]string, error) {
	listed, err := t.git(ctx, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--full-name", "--", dir)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", dir, err)
	}
	return slices.DeleteFunc(fields(listed), func(name string) bool { return !provider.IsDefinition(name) }), nil
}

// indexEntry is a path of the index. It is sparse if it is not on disk because of a sparse
// checkout.
type indexEntry struct {
	mode, id string
	sparse   bool
}

// index lists the entries of the index at a path and below it. A path with a conflict has one
// entry.
func (t *Tree) index(ctx context.Context, name string) (map[string]indexEntry, error) {
	listed, err := t.git(ctx, "ls-files", "-z", "-t", "--stage", "--full-name", "--", name)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", name, err)
	}
	entries := map[string]indexEntry{}
	for _, line := range fields(listed) {
		about, at, _ := strings.Cut(line, "\t")
		words := strings.Fields(about) // tag, mode, id, stage
		if len(words) != 4 {
			return nil, fmt.Errorf("listing %s: git ls-files printed %q", name, line)
		}
		entries[at] = indexEntry{mode: words[1], id: words[2], sparse: words[0] == "S" && !t.isFile(at)}
	}
	return entries, nil
}

// File returns one file, at a commit or on disk. The text of a link is its target: Git does not
// follow links out of the tree.
func (t *Tree) File(ctx context.Context, at, name string) ([]byte, error) {
	if err := provider.CheckPath(name); err != nil {
		return nil, err
	}
	if at != OnDisk {
		return t.fileAt(ctx, at, name)
	}
	if t.isFile(name) && !t.throughLink(name) {
		return t.read(name)
	}
	indexed, err := t.index(ctx, name)
	if err != nil {
		return nil, err
	}
	if !indexed[name].sparse {
		return nil, fault.Invalidf(reasonFileNotFound, "%s does not exist in the working tree", name)
	}
	return t.blob(ctx, name, indexed[name].id)
}

func (t *Tree) path(name string) string { return filepath.Join(t.Root, filepath.FromSlash(name)) }

// isFile reports whether there is a file or a link at a path.
func (t *Tree) isFile(name string) bool {
	info, err := os.Lstat(t.path(name))
	return err == nil && !info.IsDir()
}

// throughLink reports whether a directory of the path is a link: Git has nothing below it.
func (t *Tree) throughLink(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if info, err := os.Lstat(t.path(dir)); err != nil || !info.IsDir() {
			return true
		}
	}
	return false
}

func (t *Tree) read(name string) ([]byte, error) {
	info, err := os.Lstat(t.path(name))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(t.path(name))
		return []byte(target), err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is neither a file nor a link", name) // a named pipe would be waited for
	case info.Size() > provider.MaxFile:
		return nil, provider.TooLarge(name, int(info.Size()))
	}
	data, err := os.ReadFile(t.path(name)) // #nosec G304 -- a path below the working tree's root
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return data, nil
}

// entry is a line of git ls-tree.
type entry struct {
	mode, kind, id, path string
	size                 int
}

func (t *Tree) filesAt(ctx context.Context, sha, dir string) ([]git.File, error) {
	found, err := t.entries(ctx, sha, dir, false)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if found[0].kind != "tree" {
		return nil, provider.NotDirectory(dir, found[0].mode)
	}
	all, err := t.entries(ctx, sha, dir, true)
	if err != nil {
		return nil, err
	}
	var names []string
	ids := map[string]string{}
	for _, e := range all {
		if e.kind != "blob" || !provider.IsDefinition(e.path) {
			continue
		}
		if e.size > provider.MaxFile {
			return nil, provider.TooLarge(e.path, e.size)
		}
		names, ids[e.path] = append(names, e.path), e.id
	}
	return provider.ReadFiles(ctx, dir, names, func(ctx context.Context, name string) ([]byte, error) {
		return t.blob(ctx, name, ids[name])
	})
}

func (t *Tree) fileAt(ctx context.Context, sha, name string) ([]byte, error) {
	found, err := t.entries(ctx, sha, name, false)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || found[0].kind != "blob" {
		return nil, fault.Invalidf(reasonFileNotFound, "%s does not exist at commit %s", name, sha)
	}
	if found[0].size > provider.MaxFile {
		return nil, provider.TooLarge(name, found[0].size)
	}
	return t.blob(ctx, name, found[0].id)
}

func (t *Tree) entries(ctx context.Context, sha, name string, recursive bool) ([]entry, error) {
	args := []string{"ls-tree", "-z", "-l", "--full-tree"}
	if recursive {
		args = append(args, "-r")
	}
	said, err := t.git(ctx, append(args, sha, "--", name)...)
	if err != nil {
		return nil, fmt.Errorf("reading %s at commit %s: %w", name, sha, err)
	}
	var all []entry
	for _, line := range fields(said) {
		about, at, _ := strings.Cut(line, "\t")
		words := strings.Fields(about) // mode, kind, id, size
		if len(words) != 4 {
			return nil, fmt.Errorf("reading %s at commit %s: git ls-tree printed %q", name, sha, line)
		}
		size, err := strconv.Atoi(words[3])
		if err != nil {
			size = 0 // "-" of what is no file
		}
		all = append(all, entry{mode: words[0], kind: words[1], id: words[2], path: at, size: size})
	}
	return all, nil
}

func (t *Tree) blob(ctx context.Context, name, id string) ([]byte, error) {
	data, err := t.git(ctx, "cat-file", "blob", id)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return []byte(data), nil
}
