// SPDX-License-Identifier: Apache-2.0

// Command base writes the base of Plumbline's images into ko's cache and prints its reference, so
// that no registry is needed to build them. The base is the same bytes every time: one layer with
// the root certificates of the NSS trust store and a user that is not root, for each platform.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// repository is in the reserved top-level domain. If ko does not find the base in its cache, it
	// cannot fetch another user's image by this name.
	repository = "plumbline.invalid/static"
	// user is the one that the Deployments in config/ run as.
	user         = "65532:65532"
	certificates = "etc/ssl/certs/ca-certificates.crt"
)

func main() {
	path := flag.String("layout", "", "the OCI layout to write into: $KOCACHE/img")
	flag.Parse()
	if *path == "" {
		log.Fatal("base: -layout is required")
	}
	digest, err := write(*path)
	if err != nil {
		log.Fatalf("base: %v", err)
	}
	fmt.Printf("%s@%s\n", repository, digest)
}

// write may be repeated: it replaces existing files by the same content.
func write(path string) (v1.Hash, error) {
	target, err := open(path)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("opening the layout %s: %w", path, err)
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range []string{"amd64", "arm64", "ppc64le", "s390x"} {
		image, err := makeImage(architecture)
		if err != nil {
			return v1.Hash{}, fmt.Errorf("making the base for %s: %w", architecture, err)
		}
		// ko looks for the images of an index beside it, not in it.
		if err := replace(target.ReplaceImage, image); err != nil {
			return v1.Hash{}, fmt.Errorf("writing the base for %s: %w", architecture, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	if err := replace(target.ReplaceIndex, index); err != nil {
		return v1.Hash{}, fmt.Errorf("writing the base: %w", err)
	}
	return index.Digest()
}

func open(path string) (layout.Path, error) {
	target, err := layout.FromPath(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return target, err
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", err
	}
	return layout.Write(path, empty.Index)
}

type digester interface{ Digest() (v1.Hash, error) }

func replace[T digester](write func(T, match.Matcher, ...layout.Option) error, object T) error {
	digest, err := object.Digest()
	if err != nil {
		return err
	}
	return write(object, match.Digests(digest))
}

func makeImage(architecture string) (v1.Image, error) {
	content, err := files()
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(
		mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		layer,
	)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	config.Config = v1.Config{User: user, WorkingDir: "/", Env: []string{"PATH=/", "SSL_CERT_FILE=/" + certificates}}
	return mutate.ConfigFile(image, config)
}

// files is the tar stream of the layer. Its order, owners and times (none) are fixed.
func files() ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, name := range []string{"etc/", "etc/ssl/", "etc/ssl/certs/"} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}); err != nil {
			return nil, err
		}
	}
	roots, err := trusted()
	if err != nil {
		return nil, err
	}
	for _, file := range []struct {
		name string
		data []byte
	}{
		{certificates, roots},
		{"etc/group", []byte("root:x:0:\nnonroot:x:65532:\n")},
		{"etc/passwd", []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
	} {
		if err := w.WriteHeader(
			&tar.Header{Typeflag: tar.TypeReg, Name: file.name, Mode: 0o644, Size: int64(len(file.data))},
		); err != nil {
			return nil, err
		}
		if _, err := w.Write(file.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// trusted is the roots in PEM. Those that are trusted only under a condition are left out: a file
// cannot say it.
func trusted() ([]byte, error) {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return all.Bytes(), nil
}
