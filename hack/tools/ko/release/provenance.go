// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	provenance = "provenance.json"
	checksums  = "SHA256SUMS"
	digests    = "digests.txt"

	predicateType = "https://slsa.dev/provenance/v1"
	project       = "https://github.com/plumbline-ci/plumbline"
	// buildType is explained under this heading.
	buildType = project + "/blob/main/docs/releases.md#provenance"
)

// pushed returns the digests of what push pushes under a tag, by the name it gets.
func (r release) pushed(images []image) ([]sum, error) {
	chart, err := r.chart()
	if err != nil {
		return nil, err
	}
	digest, err := chart.Digest()
	if err != nil {
		return nil, err
	}
	var all []sum
	for _, i := range images {
		all = append(all, sum{r.registry + "/" + i.name, i.Digest.Hex})
	}
	return append(all, sum{r.registry + chartRepository, digest.Hex}), nil
}

// writeDigests writes the file whose lines the release workflow signs.
func (r release) writeDigests(images []image) error {
	pushed, err := r.pushed(images)
	if err != nil {
		return err
	}
	return r.writeFile(digests, linesOf(pushed))
}

// writeProvenance writes an in-toto statement about the images, the chart and all files. It has no
// times: every build of the commit by the same builder writes the same.
func (r release) writeProvenance(images []image) error {
	pushed, err := r.pushed(images)
	if err != nil {
		return err
	}
	files, err := r.sums()
	if err != nil {
		return err
	}
	statement := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: predicateType}
	for _, s := range slices.Concat(pushed, files) {
		subject := &intoto.ResourceDescriptor{Name: s.name, Digest: map[string]string{"sha256": s.sha256}}
		statement.Subject = append(statement.Subject, subject)
	}
	if statement.Predicate, err = r.predicate(); err != nil {
		return fmt.Errorf("making the provenance: %w", err)
	}
	if err := statement.Validate(); err != nil {
		return fmt.Errorf("checking the provenance: %w", err)
	}
	text, err := protojson.Marshal(statement)
	if err != nil {
		return err
	}
	// protojson varies its white space from build to build.
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		return err
	}
	return r.writeFile(provenance, append(indented.Bytes(), '\n'))
}

func (r release) predicate() (*structpb.Struct, error) {
	source := "git+" + project + "@refs/tags/" + r.version
	external, err := structpb.NewStruct(map[string]any{"source": source, "version": r.version, "registry": r.registry})
	if err != nil {
		return nil, err
	}
	internal, err := structpb.NewStruct(map[string]any{"go": runtime.Version()})
	if err != nil {
		return nil, err
	}
	p := &slsa.Provenance{
		BuildDefinition: &slsa.BuildDefinition{
			BuildType:          buildType,
			ExternalParameters: external,
			InternalParameters: internal,
			ResolvedDependencies: []*intoto.ResourceDescriptor{
				{Uri: source, Digest: map[string]string{"gitCommit": r.commit}},
			},
		},
		RunDetails: &slsa.RunDetails{Builder: &slsa.Builder{Id: r.builder}},
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(p)
	if err != nil {
		return nil, err
	}
	predicate := &structpb.Struct{}
	return predicate, protojson.Unmarshal(text, predicate)
}

func (r release) writeChecksums([]image) error {
	sums, err := r.sums()
	if err != nil {
		return err
	}
	return r.writeFile(checksums, linesOf(sums))
}

// checkFiles returns an error that names the files which SHA256SUMS does not describe as they are.
func (r release) checkFiles() error {
	sums, err := r.sums()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(r.dir, checksums))
	if err != nil {
		return err
	}
	want := map[string]string{} // lines by name
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		_, name, _ := strings.Cut(line, "  ")
		want[name] = line
	}
	var differ []string
	for _, s := range sums {
		if want[s.name] != s.String() {
			differ = append(differ, s.name)
		}
		delete(want, s.name)
	}
	if differ = append(differ, slices.Sorted(maps.Keys(want))...); len(differ) > 0 {
		return fmt.Errorf("these files are not those of %s: %s", checksums, strings.Join(differ, ", "))
	}
	return nil
}

type sum struct{ name, sha256 string }

// String is the line that sha256sum writes.
func (s sum) String() string { return s.sha256 + "  " + s.name }

func linesOf(sums []sum) []byte {
	var text bytes.Buffer
	for _, s := range sums {
		fmt.Fprintln(&text, s)
	}
	return text.Bytes()
}

// sums returns the checksums of the files that are written so far, by name.
func (r release) sums() ([]sum, error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, err
	}
	var sums []sum
	for _, entry := range entries {
		if entry.IsDir() || entry.Name() == checksums {
			continue
		}
		text, err := os.ReadFile(filepath.Join(r.dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		of := sha256.Sum256(text)
		sums = append(sums, sum{entry.Name(), hex.EncodeToString(of[:])})
	}
	return sums, nil
}
