// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// Helm finds a chart in a registry by these types: https://helm.sh/community/hips/hip-0017
const (
	chartConfigType = "application/vnd.cncf.helm.config.v1+json"
	chartType       = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

	// chartRepository is where the chart is, below the registry of the images.
	chartRepository = "/charts/plumbline"
)

// pushChart pushes the package of the chart to where `helm install oci://…/charts/plumbline` finds
// it: next to the images, under its version.
func (r release) pushChart(registry string, options []remote.Option) error {
	tag, err := name.NewTag(registry + chartRepository + ":" + r.chartVersion())
	if err != nil {
		return err
	}
	chart, err := r.chart()
	if err != nil {
		return err
	}
	descriptor, err := partial.Descriptor(chart)
	if err != nil {
		return err
	}
	if err := requireUnused(tag, descriptor.Digest, options); err != nil {
		return err
	}
	if err := remote.Write(tag, chart, options...); err != nil {
		return fmt.Errorf("pushing %s: %w", tag, err)
	}
	fmt.Println(tag)
	return r.attach(provenance, provenanceType, *descriptor, tag.Context(), options)
}

func (r release) chartVersion() string { return strings.TrimPrefix(r.version, "v") }

// chart returns the package of the chart as it is pushed.
func (r release) chart() (v1.Image, error) {
	packed, err := os.ReadFile(filepath.Join(r.dir, "plumbline-"+r.chartVersion()+".tgz"))
	if err != nil {
		return nil, err
	}
	chart, err := chartImage(packed)
	if err != nil {
		return nil, fmt.Errorf("reading the package of the chart: %w", err)
	}
	return chart, nil
}

// packagedChart is an image whose config is not that of a container.
type packagedChart struct {
	config, manifest []byte
	layer            v1.Layer
}

func (c packagedChart) RawConfigFile() ([]byte, error)                         { return c.config, nil }
func (c packagedChart) MediaType() (types.MediaType, error)                    { return types.OCIManifestSchema1, nil }
func (c packagedChart) RawManifest() ([]byte, error)                           { return c.manifest, nil }
func (c packagedChart) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) { return c.layer, nil }

// chartImage has the package as its layer, and Chart.yaml as its config.
func chartImage(packed []byte) (v1.Image, error) {
	metadata, err := chartFile(packed, "Chart.yaml")
	if err != nil {
		return nil, err
	}
	c := packagedChart{layer: static.NewLayer(packed, chartType)}
	if c.config, err = yaml.YAMLToJSON(metadata); err != nil {
		return nil, err
	}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1}
	config, err := partial.Descriptor(static.NewLayer(c.config, chartConfigType))
	if err != nil {
		return nil, err
	}
	content, err := partial.Descriptor(c.layer)
	if err != nil {
		return nil, err
	}
	manifest.Config, manifest.Layers = *config, []v1.Descriptor{*content}
	if c.manifest, err = json.Marshal(manifest); err != nil {
		return nil, err
	}
	return partial.CompressedToImage(c)
}

// chartFile returns a file of the package.
func chartFile(packed []byte, file string) ([]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if err != nil {
			return nil, fmt.Errorf("finding %s: %w", file, err)
		}
		if header.Name == "plumbline/"+file {
			return io.ReadAll(files)
		}
	}
}
