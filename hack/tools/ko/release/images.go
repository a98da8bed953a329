// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// image is an image for several platforms.
type image struct {
	// name is the command's, for example receiver.
	name   string
	index  v1.ImageIndex
	digest v1.Hash
}

// imagesIn reads the OCI layouts in dir. Each has one index, as hack/images.sh writes it.
func imagesIn(dir string) ([]image, error) {
	layouts, err := filepath.Glob(filepath.Join(dir, "*", "oci-layout"))
	if err != nil {
		return nil, err
	}
	if len(layouts) == 0 {
		return nil, fmt.Errorf("%s has no OCI layout", dir)
	}
	var images []image
	for _, file := range layouts {
		path := filepath.Dir(file)
		index, err := layout.ImageIndexFromPath(path)
		if err != nil {
			return nil, fmt.Errorf("opening the layout %s: %w", path, err)
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			return nil, fmt.Errorf("reading the layout %s: %w", path, err)
		}
		if len(manifest.Manifests) != 1 || !manifest.Manifests[0].MediaType.IsIndex() {
			return nil, fmt.Errorf("the layout %s has not exactly one image for several platforms", path)
		}
		digest := manifest.Manifests[0].Digest
		inner, err := index.ImageIndex(digest)
		if err != nil {
			return nil, fmt.Errorf("reading the layout %s: %w", path, err)
		}
		images = append(images, image{name: filepath.Base(path), index: inner, digest: digest})
	}
	return images, nil
}

func (r release) reference(i image) string {
	return fmt.Sprintf("%s/%s@%s", r.registry, i.name, i.digest)
}

const (
	manifests = "release.yaml"
	// placeholder is how config/ names the image of a command.
	placeholder = "ko://github.com/plumbline-ci/plumbline/cmd/"
)

// writeManifests writes what kubectl apply -f config/ would apply, as one file with the images.
func (r release) writeManifests(images []image) error {
	files, err := filepath.Glob(filepath.Join(r.source, "config", "[0-9]*.yaml"))
	if err != nil {
		return err
	}
	var all bytes.Buffer
	fmt.Fprintf(&all, "# Plumbline %s, to be installed with: kubectl apply -f %s\n", r.version, manifests)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(&all, "---\n%s", text)
	}
	text := all.Bytes()
	for _, i := range images {
		name := []byte(placeholder + i.name)
		if !bytes.Contains(text, name) {
			return fmt.Errorf("nothing in config/ uses the image %s", name)
		}
		text = bytes.ReplaceAll(text, name, []byte(r.reference(i)))
	}
	if _, rest, found := bytes.Cut(text, []byte("ko://")); found {
		name, _, _ := bytes.Cut(rest, []byte("\n"))
		return fmt.Errorf("config/ uses the image ko://%s, of which %s has no layout", name, r.dir)
	}
	return r.writeFile(manifests, text)
}

func (r release) writeFile(name string, text []byte) error {
	return os.WriteFile(filepath.Join(r.dir, name), text, 0o644)
}
