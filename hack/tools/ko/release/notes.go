// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	notes     = "notes.md"
	changelog = "CHANGELOG.md"
	// actions is the heading that each section must have, "None." included.
	actions = "### Actions required before upgrading\n"
)

// writeNotes writes the section of this version in CHANGELOG.md.
func (r release) writeNotes([]image) error {
	text, err := os.ReadFile(filepath.Join(r.source, changelog))
	if err != nil {
		return err
	}
	section, err := sectionOf(string(text), r.version)
	if err != nil {
		return err
	}
	return r.writeFile(notes, []byte(section))
}

// sectionOf returns the text below the heading of a version. A pre-release has that of its version.
func sectionOf(text, version string) (string, error) {
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "v"), "-")
	_, section, found := strings.Cut(text, "\n## ["+version+"]")
	if !found {
		return "", fmt.Errorf("%s has no section %q", changelog, "## ["+version+"]")
	}
	_, section, _ = strings.Cut(section, "\n") // the date
	section, _, _ = strings.Cut(section, "\n## [")
	section = strings.TrimSpace(section) + "\n"
	if !strings.Contains(section, actions) {
		return "", fmt.Errorf("the section %s of %s has no heading %q", version, changelog, strings.TrimSpace(actions))
	}
	return section, nil
}
