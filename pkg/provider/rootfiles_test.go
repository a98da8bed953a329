// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

func TestRootFilesRefuseLinks(t *testing.T) {
	t.Parallel()
	const file, aliases = "OWNERS", "OWNERS_ALIASES"
	blob := func(name, mode string) Entry { return Entry{Name: name, Type: "blob", Mode: mode, ID: name} }
	for sentence, c := range map[string]struct {
		entries []Entry
		read    int
		link    bool
	}{
		"nothing is there":         {nil, 0, false},
		"the first is not there":   {[]Entry{blob(aliases, "100644")}, 0, false},
		"the first is a directory": {[]Entry{{Name: file, Type: "tree"}, blob(aliases, "100644")}, 0, false},
		"both are there": {
			[]Entry{blob(aliases, "100644"), blob(file, "100755"), blob("x", "100644")}, 2, false,
		},
		"the first is a link":           {[]Entry{blob(file, ModeLink)}, 0, true},
		"the second is a link":          {[]Entry{blob(file, "100644"), blob(aliases, ModeLink)}, 1, true},
		"the second is a module of git": {[]Entry{blob(file, "100644"), {Name: aliases, Type: "commit"}}, 1, false},
	} {
		read := 0
		files, err := RootFiles(c.entries, []string{file, aliases},
			func(e Entry) ([]byte, error) { read++; return []byte(e.ID), nil })
		if read != c.read || fault.Is(err, fault.Invalid) != c.link || err == nil && len(files) != c.read {
			t.Errorf("%s: %v, %v after %d, want %d", sentence, files, err, read, c.read)
		}
	}
	down := errors.New("502")
	if files, err := RootFiles([]Entry{blob(file, "100644")}, []string{file},
		func(Entry) ([]byte, error) { return nil, down }); files != nil || !errors.Is(err, down) {
		t.Errorf("what cannot be read: %v, %v", files, err)
	}
}
