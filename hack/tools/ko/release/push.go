// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	sbomType       = "application/spdx+json"
	provenanceType = "application/vnd.in-toto+json"
)

// push pushes each image to where release.yaml expects it, attaches its SBOMs and the provenance,
// and pushes the chart. It may be repeated. It pushes nothing if a file differs from SHA256SUMS.
func (r release) push(options ...remote.Option) error {
	if err := r.checkFiles(); err != nil {
		return err
	}
	images, err := imagesIn(r.dir)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(r.dir, manifests))
	if err != nil {
		return err
	}
	registry := ""
	for _, i := range images {
		expected := regexp.MustCompile(`\S+/` + i.name + `@` + i.Digest.String()).Find(text)
		if expected == nil {
			return fmt.Errorf("%s does not use the image %s of this directory (%s)", manifests, i.name, i.Digest)
		}
		reference, err := name.NewDigest(string(expected))
		if err != nil {
			return err
		}
		if err := r.pushImage(i, reference.Context(), options); err != nil {
			return fmt.Errorf("pushing %s: %w", reference, err)
		}
		fmt.Println(reference)
		registry = strings.TrimSuffix(reference.Context().Name(), "/"+i.name)
	}
	return r.pushChart(registry, options)
}

func (r release) pushImage(i image, to name.Repository, options []remote.Option) error {
	tag := to.Tag(r.version)
	if err := requireUnused(tag, i.Digest, options); err != nil {
		return err
	}
	if err := remote.Push(tag, i.content, options...); err != nil {
		return err
	}
	for _, of := range i.platforms {
		sbom := fmt.Sprintf("%s-%s-%s.spdx.json", i.name, of.Platform.OS, of.Platform.Architecture)
		if err := r.attach(sbom, sbomType, of, to, options); err != nil {
			return err
		}
	}
	return r.attach(provenance, provenanceType, i.Descriptor, to, options)
}

// requireUnused returns an error if the tag has other content: a version never changes.
func requireUnused(tag name.Tag, digest v1.Hash, options []remote.Option) error {
	var refused *transport.Error
	switch there, err := remote.Head(tag, options...); {
	case errors.As(err, &refused) && refused.StatusCode == http.StatusNotFound:
		return nil
	case err != nil:
		return err
	case there.Digest != digest:
		return fmt.Errorf("%s exists and has other content, %s", tag, there.Digest)
	}
	return nil
}

// attach pushes a file as an artifact whose subject is an image.
func (r release) attach(
	file, mediaType string,
	subject v1.Descriptor,
	to name.Repository,
	options []remote.Option,
) error {
	text, err := os.ReadFile(filepath.Join(r.dir, file))
	if err != nil {
		return err
	}
	artifact := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	// A reader takes the type of an artifact from its config.
	artifact = mutate.ConfigMediaType(artifact, types.MediaType(mediaType))
	artifact, err = mutate.AppendLayers(artifact, static.NewLayer(text, types.MediaType(mediaType)))
	if err != nil {
		return err
	}
	with, isImage := mutate.Subject(artifact, subject).(v1.Image)
	if !isImage {
		return fmt.Errorf("an artifact with a subject is %T, no image", with)
	}
	digest, err := with.Digest()
	if err != nil {
		return err
	}
	return remote.Write(to.Digest(digest.String()), with, options...)
}
