// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// image is what one layout has: an index of images, or the image for a single platform.
type image struct {
	// name is the command's, for example receiver.
	name    string
	content remote.Taggable
	v1.Descriptor
	// platforms are the images for each platform.
	platforms []v1.Descriptor
}

// imagesIn reads the OCI layouts in dir, which hack/images.sh writes.
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
		i, err := imageIn(filepath.Dir(file))
		if err != nil {
			return nil, fmt.Errorf("reading the layout %s: %w", filepath.Dir(file), err)
		}
		images = append(images, i)
	}
	return images, nil
}

func imageIn(path string) (image, error) {
	all, err := layout.ImageIndexFromPath(path)
	if err != nil {
		return image{}, err
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		return image{}, err
	}
	if len(manifest.Manifests) != 1 {
		return image{}, fmt.Errorf("it has %d images, want one", len(manifest.Manifests))
	}
	of := manifest.Manifests[0]
	i := image{
		name:       filepath.Base(path),
		Descriptor: v1.Descriptor{MediaType: of.MediaType, Size: of.Size, Digest: of.Digest},
	}
	if of.MediaType.IsIndex() {
		index, err := all.ImageIndex(of.Digest)
		if err != nil {
			return image{}, err
		}
		inner, err := index.IndexManifest()
		if err != nil {
			return image{}, err
		}
		i.content, i.platforms = index, inner.Manifests
		return i, nil
	}
	single, err := all.Image(of.Digest)
	if err != nil {
		return image{}, err
	}
	config, err := single.ConfigFile()
	if err != nil {
		return image{}, err
	}
	platform := i.Descriptor
	platform.Platform = config.Platform()
	i.content, i.platforms = single, []v1.Descriptor{platform}
	return i, nil
}

func (r release) reference(i image) string {
	return fmt.Sprintf("%s/%s@%s", r.registry, i.name, i.Digest)
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
