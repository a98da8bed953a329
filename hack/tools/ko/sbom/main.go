// SPDX-License-Identifier: Apache-2.0

// Command sbom requires that beside an OCI layout there is an SBOM for each of its images: one that
// names the image's digest and every module that is linked into its program. An SBOM of another
// build is worse than none.
//
//	sbom dist/images/receiver    # reads dist/images/receiver-linux-amd64.spdx.json
package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path"
	"runtime/debug"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: sbom <OCI layout>")
	}
	if err := check(os.Args[1]); err != nil {
		log.Fatalf("sbom: %v", err)
	}
}

// document is the part of an SPDX document that is looked at.
type document struct {
	Packages []struct {
		Name    string `json:"name"`
		Version string `json:"versionInfo"`
	} `json:"packages"`
}

// check checks every image of the layout, including those of its indexes.
func check(at string) error {
	index, err := layout.ImageIndexFromPath(at)
	if err != nil {
		return fmt.Errorf("opening the layout %s: %w", at, err)
	}
	images, err := imagesOf(index)
	if err != nil {
		return fmt.Errorf("reading the layout %s: %w", at, err)
	}
	if len(images) == 0 {
		return fmt.Errorf("the layout %s has no image", at)
	}
	for _, image := range images {
		if err := checkImage(at, image); err != nil {
			return err
		}
	}
	return nil
}

func imagesOf(index v1.ImageIndex) ([]v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var images []v1.Image
	for _, entry := range manifest.Manifests {
		if entry.MediaType.IsIndex() {
			inner, err := index.ImageIndex(entry.Digest)
			if err != nil {
				return nil, err
			}
			more, err := imagesOf(inner)
			if err != nil {
				return nil, err
			}
			images = append(images, more...)
			continue
		}
		image, err := index.Image(entry.Digest)
		if err != nil {
			return nil, err
		}
		images = append(images, image)
	}
	return images, nil
}

func checkImage(at string, image v1.Image) error {
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	file := fmt.Sprintf("%s-%s-%s.spdx.json", at, config.OS, config.Architecture)
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("the image %s has no SBOM: %w", digest, err)
	}
	var sbom document
	if err := json.Unmarshal(data, &sbom); err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	named := map[string]bool{}
	for _, p := range sbom.Packages {
		named[p.Name] = true
		named[p.Name+"@"+p.Version] = true
	}
	if !named[digest.String()] {
		return fmt.Errorf("%s is not about the image %s", file, digest)
	}
	build, err := program(image, path.Base(at))
	if err != nil {
		return fmt.Errorf("reading the image %s: %w", digest, err)
	}
	for _, module := range build.Deps {
		if !named[module.Path+"@"+module.Version] {
			return fmt.Errorf("%s does not name %s %s, which is in the image's program", file, module.Path, module.Version)
		}
	}
	return nil
}

// program returns the build information that Go has written into the image's program.
func program(image v1.Image, command string) (*debug.BuildInfo, error) {
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	for _, layer := range layers {
		content, err := layer.Uncompressed()
		if err != nil {
			return nil, err
		}
		binary, err := find(content, command)
		if err := errors.Join(err, content.Close()); err != nil {
			return nil, err
		}
		if binary != nil {
			return buildinfo.Read(bytes.NewReader(binary))
		}
	}
	return nil, fmt.Errorf("there is no program %s", command)
}

// find returns the file of that name from a tar stream, nil if it is not there.
func find(content io.Reader, name string) ([]byte, error) {
	for files := tar.NewReader(content); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag == tar.TypeReg && path.Base(header.Name) == name {
			return io.ReadAll(files)
		}
	}
}
