// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/types"
	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// made is a release to test instead of one with random images. make release sets it.
var made = flag.String("release", "", "the directory of a release that hack/release.sh has written")

const (
	root   = "../../../.."
	commit = "0123456789abcdef0123456789abcdef01234567"
)

// newRelease returns the release of -release, or writes one. Its manifests and notes are those of
// the repository, its images are random.
func newRelease(t *testing.T) release {
	t.Helper()
	r := release{
		dir: *made, source: root, version: "v0.1.0", registry: "registry.example/plumbline",
		commit: commit, builder: "https://builder.example",
	}
	if *made != "" {
		return r
	}
	r.dir = t.TempDir()
	for _, name := range []string{"receiver", "controller"} {
		writeLayout(t, r.dir, name)
	}
	must(t, r.writeFile("plumb-linux-amd64", []byte("the program")))
	writeChart(t, r)
	must(t, r.write())
	return r
}

// writeLayout writes an index of two images, except for controller: that is one image.
func writeLayout(t *testing.T, dir, name string) {
	t.Helper()
	target, err := layout.Write(filepath.Join(dir, name), empty.Index)
	must(t, err)
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range []string{"amd64", "s390x"} {
		image, err := random.Image(100, 2)
		must(t, err)
		config, err := image.ConfigFile()
		must(t, err)
		config = config.DeepCopy()
		config.OS, config.Architecture = "linux", architecture
		image, err = mutate.ConfigFile(image, config)
		must(t, err)
		sbom := filepath.Join(dir, name+"-linux-"+architecture+".spdx.json")
		must(t, os.WriteFile(sbom, []byte(`{"name": "`+name+architecture+`"}`), 0o600))
		if name == "controller" {
			must(t, target.AppendImage(image))
			return
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	must(t, target.AppendIndex(index))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, r release, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	must(t, err)
	return string(text)
}

func TestChecksumsAreOfAllFiles(t *testing.T) {
	r := newRelease(t)
	want := map[string]string{}
	entries, err := os.ReadDir(r.dir)
	must(t, err)
	for _, entry := range entries {
		if !entry.IsDir() && entry.Name() != checksums {
			of := sha256.Sum256([]byte(read(t, r, entry.Name())))
			want[entry.Name()] = hex.EncodeToString(of[:])
		}
	}
	got := map[string]string{}
	for line := range strings.Lines(read(t, r, checksums)) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		got[name] = sum
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s has %v, want %v", checksums, got, want)
	}
}

// statementOf reads the provenance as a verifier does.
func statementOf(t *testing.T, text string) (*intoto.Statement, *slsa.Provenance) {
	t.Helper()
	statement, predicate := &intoto.Statement{}, &slsa.Provenance{}
	must(t, protojson.Unmarshal([]byte(text), statement))
	must(t, statement.Validate())
	inner, err := protojson.Marshal(statement.GetPredicate())
	must(t, err)
	must(t, protojson.Unmarshal(inner, predicate))
	must(t, predicate.Validate())
	return statement, predicate
}

func TestProvenanceIsOfImagesChartAndFiles(t *testing.T) {
	r := newRelease(t)
	statement, predicate := statementOf(t, read(t, r, provenance))
	got := map[string]bool{}
	for _, subject := range statement.GetSubject() {
		got[subject.GetDigest()["sha256"]+"  "+subject.GetName()] = true
	}
	for image := range usedImages(t, read(t, r, manifests)) {
		if name, digest, _ := strings.Cut(image, "@sha256:"); !got[digest+"  "+name] {
			t.Errorf("no subject is %s", image)
		}
	}
	chart := "  registry.example/plumbline/charts/plumbline\n"
	if text := read(t, r, digests); *made == "" && !strings.HasSuffix(text, chart) || strings.Count(text, "\n") != 3 {
		t.Errorf("%s has not the images and the chart:\n%s", digests, text)
	}
	for line := range strings.Lines(read(t, r, digests) + read(t, r, checksums)) {
		if line = strings.TrimSuffix(line, "\n"); !got[line] && !strings.HasSuffix(line, "  "+provenance) {
			t.Errorf("no subject is %q", line)
		}
	}
	dependencies := predicate.GetBuildDefinition().GetResolvedDependencies()
	if len(dependencies) != 1 || len(dependencies[0].GetDigest()["gitCommit"]) != len(commit) {
		t.Errorf("the build depends on %v, want on a commit", dependencies)
	}
	if statement.GetPredicateType() != predicateType || predicate.GetRunDetails().GetBuilder().GetId() == "" {
		t.Errorf("predicate %s, builder %q", statement.GetPredicateType(), predicate.GetRunDetails().GetBuilder().GetId())
	}
}

func TestWriteRefuses(t *testing.T) {
	sources := func(t *testing.T, deployment, log string) string {
		dir := t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, "config"), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "config", "600-deployments.yaml"), []byte(deployment), 0o600))
		must(t, os.WriteFile(filepath.Join(dir, changelog), []byte(log), 0o600))
		return dir
	}
	const (
		both = "image: " + placeholder + "receiver\nimage: " + placeholder + "controller\n"
		good = "# Changelog\n\n## [0.1.0]\n\n" + actions + "\nNone.\n"
	)
	for name, test := range map[string]struct{ deployment, log, layout, says string }{
		"an image that is not built":     {both + "image: " + placeholder + "other\n", good, "", "cmd/other, of which"},
		"an image that is not used":      {"image: " + placeholder + "receiver\n", good, "", "nothing in config/ uses"},
		"a version without a section":    {both, "# Changelog\n\n## [0.2.0]\n", "", `no section "## [0.1.0]"`},
		"a section without actions":      {both, "# Changelog\n\n## [0.1.0]\n\n## [0.0.1]\n" + actions, "", "has no heading"},
		"a layout with two images in it": {both, good, "receiver", "it has 2 images"},
		"nothing is wrong":               {both, good, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := release{
				dir: t.TempDir(), source: sources(t, test.deployment, test.log), version: "v0.1.0", registry: "r.example/p",
				commit: commit, builder: "https://builder.example",
			}
			writeLayout(t, r.dir, "receiver")
			writeLayout(t, r.dir, "controller")
			writeChart(t, r)
			if test.layout != "" {
				again, err := layout.FromPath(filepath.Join(r.dir, test.layout))
				must(t, err)
				must(t, again.AppendIndex(mutate.IndexMediaType(empty.Index, types.OCIImageIndex)))
			}
			err := r.write()
			if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("it says %v, want %q", err, test.says)
			}
		})
	}
}

func TestVersionsAreTags(t *testing.T) {
	for _, version := range []string{"", "0.1.0", "v0.1", "v0.1.0+dirty", "latest"} {
		if err := run([]string{"push", "-dir", t.TempDir(), "-version", version}); err == nil ||
			!strings.Contains(err.Error(), "is not a version") {
			t.Errorf("%q: %v", version, err)
		}
	}
}

func TestNotesAreTheSectionOfTheVersion(t *testing.T) {
	const log = "# Changelog\n\n## [0.2.0] - 2027-01-02\n\n" + actions + "\nSecond.\n\n## [0.1.0] - 2026-12-01\n\n" + actions + "\nFirst.\n"
	for version, want := range map[string]string{
		"v0.2.0": actions + "\nSecond.\n", "v0.1.0": actions + "\nFirst.\n", "v0.1.0-rc.1": actions + "\nFirst.\n",
	} {
		if got, err := sectionOf(log, version); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", version, got, err, want)
		}
	}
	if got := read(t, newRelease(t), notes); !strings.Contains(got, actions) {
		t.Errorf("the release's notes are %q", got)
	}
}
