// SPDX-License-Identifier: Apache-2.0

// Command release turns a directory with images, programs and the chart into a release, and pushes
// the images of a release; hack/release.sh and make publish call it.
//
//	release write -dir dist/release -source . -version v0.1.0 -registry REGISTRY -commit SHA
//	release push -dir dist/release -version v0.1.0
package main

import (
	"flag"
	"fmt"
	"log"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/mod/semver"
)

// release is what the command line says about a release.
type release struct {
	// dir has the OCI layouts of the images in directories, and all other files of the release.
	dir string
	// source is the root of the repository.
	source string
	// version is the tag, for example v0.1.0.
	version string
	// registry is where the images will be: <registry>/receiver.
	registry string
	// commit is what was built, and builder who built it.
	commit, builder string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		log.Fatalf("release: %v", err)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no command: write or push")
	}
	var r release
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	flags.StringVar(&r.dir, "dir", "", "the directory of the release")
	flags.StringVar(&r.version, "version", "", "the version, for example v0.1.0")
	flags.StringVar(&r.source, "source", "", "write: the root of the repository")
	flags.StringVar(
		&r.registry,
		"registry",
		"",
		"write: where the images will be, for example ghcr.io/plumbline-ci/plumbline",
	)
	flags.StringVar(&r.commit, "commit", "", "write: the commit that was built")
	flags.StringVar(&r.builder, "builder", "", "write: the URI of the builder, for the provenance")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if !semver.IsValid(r.version) || semver.Canonical(r.version) != r.version {
		return fmt.Errorf("%q is not a version such as v0.1.0", r.version)
	}
	switch args[0] {
	case "write":
		return r.write()
	case "push":
		return r.push(remote.WithAuthFromKeychain(authn.DefaultKeychain))
	}
	return fmt.Errorf("no command is called %q: write or push", args[0])
}

// write writes the files that describe the others. The provenance comes last but one: it and the
// checksums name every file before them.
func (r release) write() error {
	images, err := imagesIn(r.dir)
	if err != nil {
		return err
	}
	steps := []func([]image) error{
		r.writeManifests, r.writeNotes, r.writeDigests, r.writeProvenance, r.writeChecksums,
	}
	for _, step := range steps {
		if err := step(images); err != nil {
			return err
		}
	}
	return nil
}
