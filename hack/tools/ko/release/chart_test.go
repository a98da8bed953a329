// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// writeChart writes what a package of the chart has at least, with the digests of the images.
func writeChart(t *testing.T, r release) {
	t.Helper()
	images, err := imagesIn(r.dir)
	must(t, err)
	values := ""
	for _, i := range images {
		values += i.name + ": " + i.Digest.String() + "\n"
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	files := tar.NewWriter(zip)
	for file, text := range map[string]string{
		"plumbline/values.yaml": values,
		"plumbline/Chart.yaml":  "apiVersion: v2\nname: plumbline\nversion: 0.1.0\n",
	} {
		must(t, files.WriteHeader(&tar.Header{Name: file, Mode: 0o644, Size: int64(len(text))}))
		_, err := io.WriteString(files, text)
		must(t, err)
	}
	must(t, files.Close())
	must(t, zip.Close())
	must(t, r.writeFile("plumbline-0.1.0.tgz", packed.Bytes()))
}

// `helm install oci://<registry>/charts/plumbline --version 0.1.0` finds the chart, and the chart
// has the images of the release.
func TestChartIsPulled(t *testing.T) {
	r := newRelease(t)
	options := newRegistry(t)
	must(t, r.push(options...))
	must(t, r.push(options...)) // as after a failure
	for image := range usedImages(t, read(t, r, manifests)) {
		from, digest, _ := strings.Cut(image, "@")
		tag, err := name.NewTag(from[:strings.LastIndex(from, "/")] + "/charts/plumbline:0.1.0")
		must(t, err)
		metadata, content := pulledChart(t, tag, options)
		pushed, err := remote.Head(tag, options...)
		must(t, err)
		if !strings.Contains(read(t, r, digests), pushed.Digest.Hex+"  ") {
			t.Errorf("%s has no digest of %s, %s", digests, tag, pushed.Digest)
		}
		if got := attached(t, tag.Digest(pushed.Digest.String()), provenanceType, options); got != read(t, r, provenance) {
			t.Errorf("the provenance of %s is %q", tag, got)
		}
		if metadata["name"] != "plumbline" || metadata["version"] != "0.1.0" || metadata["apiVersion"] != "v2" {
			t.Errorf("the config of %s is %v", tag, metadata)
		}
		if string(content) != read(t, r, "plumbline-0.1.0.tgz") {
			t.Errorf("the layer of %s is not plumbline-0.1.0.tgz", tag)
		}
		if values := inChart(t, content, "values.yaml"); !strings.Contains(values, digest) {
			t.Errorf("the values of the chart have no image %s:\n%s", image, values)
		}
	}
}

// pulledChart returns config and content of a chart, which Helm finds by their media types.
func pulledChart(t *testing.T, tag name.Tag, options []remote.Option) (metadata map[string]any, content []byte) {
	t.Helper()
	chart, err := remote.Image(tag, options...)
	must(t, err)
	manifest, err := chart.Manifest()
	must(t, err)
	config := manifest.Config.MediaType
	if config != "application/vnd.cncf.helm.config.v1+json" || len(manifest.Layers) != 1 {
		t.Fatalf("%s has a config %s and %d layers", tag, config, len(manifest.Layers))
	}
	if got := manifest.Layers[0].MediaType; got != "application/vnd.cncf.helm.chart.content.v1.tar+gzip" {
		t.Errorf("the layer of %s is %s", tag, got)
	}
	text, err := chart.RawConfigFile()
	must(t, err)
	must(t, json.Unmarshal(text, &metadata))
	return metadata, blob(t, tag.Digest(manifest.Layers[0].Digest.String()), options)
}

func blob(t *testing.T, of name.Digest, options []remote.Option) []byte {
	t.Helper()
	layer, err := remote.Layer(of, options...)
	must(t, err)
	content, err := layer.Compressed()
	must(t, err)
	text, err := io.ReadAll(content)
	must(t, err)
	return text
}

func inChart(t *testing.T, packed []byte, file string) string {
	t.Helper()
	text, err := chartFile(packed, file)
	must(t, err)
	return string(text)
}

// Two packages of one version would let users install different things.
func TestPushRefusesAnotherChart(t *testing.T) {
	if *made != "" {
		t.Skip("changes the release")
	}
	r := newRelease(t)
	options := newRegistry(t)
	must(t, r.push(options...))
	must(t, r.writeFile("plumbline-0.1.0.tgz", append([]byte(read(t, r, "plumbline-0.1.0.tgz")), 0)))
	must(t, r.write())
	if err := r.push(options...); err == nil || !strings.Contains(err.Error(), "charts/plumbline:0.1.0 exists") {
		t.Errorf("it says %v", err)
	}
}
