// SPDX-License-Identifier: Apache-2.0

package provider

import "github.com/plumbline-ci/plumbline/pkg/fault"

// Entry is one entry of a directory, as Git has it.
type Entry struct{ Name, Type, Mode, ID string }

// RootFiles reads those of the named files that a listed directory has. If the first is missing, it
// reads none.
func RootFiles(entries []Entry, names []string, read func(Entry) ([]byte, error)) (map[string][]byte, error) {
	byName, files := map[string]Entry{}, map[string][]byte{}
	for _, e := range entries {
		byName[e.Name] = e
	}
	for i, name := range names {
		e := byName[name]
		switch {
		case e.Type != "blob" && i == 0:
			return files, nil
		case e.Type != "blob":
			continue
		case e.Mode == ModeLink:
			return nil, fault.Invalidf(reasonNotAFile, "%s is a link, which is not followed", name)
		}
		data, err := read(e)
		if err != nil {
			return nil, err
		}
		files[name] = data
	}
	return files, nil
}
