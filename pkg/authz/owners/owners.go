// SPDX-License-Identifier: Apache-2.0

// Package owners parses the files OWNERS and OWNERS_ALIASES of a repository, which name users who
// may start runs without write access. It gets the files as bytes and calls nothing.
package owners

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// The names of the files in the root of the repository.
const (
	File        = "OWNERS"
	AliasesFile = "OWNERS_ALIASES"
)

// MaxBytes is the maximum size of each file. OWNERS of the largest projects have a few kilobytes.
const MaxBytes = 64 << 10

// everything is the only filter that is used, the one for all files. Which files a pull request
// changes does not matter.
const everything = ".*"

// People are approvers and reviewers. The zero value is the empty set.
type People struct {
	names map[string]bool // in lower case
}

// Has reports whether the user is one of them. No Git service distinguishes upper and lower case in
// account names.
func (p People) Has(user string) bool { return user != "" && p.names[strings.ToLower(user)] }

// Any reports whether there are any.
func (p People) Any() bool { return len(p.names) > 0 }

// lists are the lists of OWNERS, and of each of its filters. Other fields (labels, options) are for
// other programs.
type lists struct {
	Approvers []string `json:"approvers"`
	Reviewers []string `json:"reviewers"`
}

func (l lists) all() []string { return append(append([]string(nil), l.Approvers...), l.Reviewers...) }

// Parse returns the people of OWNERS. OWNERS_ALIASES, which may be nil or empty, names groups of
// accounts. An alias inside an alias is ignored, so that no loop is possible. Filters count only if
// OWNERS has no lists of its own, and then only the filter for all files.
//
// An error says what is wrong with which file, without quoting its text; no people are returned
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
	// Of names that differ only in case the last one in sorted order counts, so that each attempt
	// gives the same rights.
	for _, name := range slices.Sorted(maps.Keys(groups.Aliases)) {
		aliases[strings.ToLower(name)] = groups.Aliases[name]
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
	// Decoding directly into our types would accept a number or a boolean as a name: 0123 as "83",
	// yes as "true".
	data, err := yaml.YAMLToJSON(file)
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
