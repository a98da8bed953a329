// SPDX-License-Identifier: Apache-2.0

// Package owners reads the files OWNERS and OWNERS_ALIASES of a repository: who may start runs
// beside those who can write. It is pure: it gets the files and knows nobody who could be asked for
// them.
package owners

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// The files, in the root of the repository.
const (
	File        = "OWNERS"
	AliasesFile = "OWNERS_ALIASES"
)

// MaxBytes is the largest file that is read. OWNERS of the largest projects have a few kilobytes.
const MaxBytes = 64 << 10

// everything is the only filter that is known: that of all files. Which files a pull request
// changes does not matter.
const everything = ".*"

// People are approvers and reviewers. The zero value is nobody.
type People struct {
	names map[string]bool // in lower case
}

// Has reports whether the user is one of them. No Git service tells cases apart in the names of
// accounts.
func (p People) Has(user string) bool { return user != "" && p.names[strings.ToLower(user)] }

// Any reports whether there is anybody.
func (p People) Any() bool { return len(p.names) > 0 }

// lists are those of OWNERS, and of each of its filters. Other fields (labels, options) are of
// other programs.
type lists struct {
	Approvers []string `json:"approvers"`
	Reviewers []string `json:"reviewers"`
}

func (l lists) all() []string { return append(append([]string(nil), l.Approvers...), l.Reviewers...) }

// Parse returns the people of OWNERS, with the aliases that OWNERS_ALIASES has for them: nil or
// empty when there is no such file. An alias stands for accounts alone: the name of an alias inside
// of one is nobody's, so that none can loop. Filters count only where OWNERS has no lists of its
// own, and only the one of all files.
//
// An error says what is wrong with which file, in words that hold none of its text; there is nobody
// then.
func Parse(file, aliasesFile []byte) (People, error) {
	var written struct {
		lists   `json:",inline"`
		Filters map[string]lists `json:"filters"`
	}
	var groups struct {
		Aliases map[string][]string `json:"aliases"`
	}
	if err := read(File, file, &written); err != nil {
		return People{}, err
	}
	if err := read(AliasesFile, aliasesFile, &groups); err != nil {
		return People{}, err
	}
	named := written.all()
	if len(named) == 0 {
		named = written.Filters[everything].all()
	}
	aliases := map[string][]string{}
	for name, accounts := range groups.Aliases {
		aliases[strings.ToLower(name)] = accounts
	}
	people := People{names: map[string]bool{}}
	for _, name := range named {
		accounts, isAlias := aliases[strings.ToLower(name)]
		if !isAlias {
			people.add(name)
		}
		for _, account := range accounts {
			if _, nested := aliases[strings.ToLower(account)]; !nested {
				people.add(account)
			}
		}
	}
	return people, nil
}

func (p People) add(name string) {
	if name = strings.TrimPrefix(strings.TrimSpace(name), "@"); name != "" {
		p.names[strings.ToLower(name)] = true
	}
}

func read(name string, file []byte, into any) error {
	if len(file) > MaxBytes {
		return fmt.Errorf("%s is larger than %d KiB", name, MaxBytes>>10)
	}
	data, err := yaml.YAMLToJSON(
		file,
	) // not into our types at once: that would make a name of what is none, 83 of 0123 and true of yes
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	var other *json.UnmarshalTypeError
	switch {
	case errors.As(err, &other) && (other.Value == "bool" || strings.HasPrefix(other.Value, "number")):
		return fmt.Errorf(
			"%s has a number or a yes or no where an account should be: names of digits need quotes, and so do words like yes, no, on and off",
			name,
		)
	case err != nil:
		return fmt.Errorf("%s is not YAML of lists of approvers and reviewers", name)
	}
	return nil
}
