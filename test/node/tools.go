// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// toolsImage has busybox: it is the image of steps, Tekton's shell image, and the sandbox's.
const toolsImage = "node.invalid/tools:1"

// applets are the names that busybox has in the image.
func applets() []string {
	return []string{"sh", "cat", "cp", "dd", "echo", "env", "ln", "ls", "mkdir", "sleep", "tail", "tee"}
}

// writeTools writes the image as an OCI layout.
func writeTools(layout, busybox string) error {
	layer, err := toolsLayer(busybox)
	if err != nil {
		return fmt.Errorf("making the image of tools: %w", err)
	}
	l := layoutWriter{dir: layout}
	layerBlob := l.blob("application/vnd.oci.image.layer.v1.tar", layer)
	config := l.blob("application/vnd.oci.image.config.v1+json", object{
		"os": "linux", "architecture": runtime.GOARCH,
		"config": object{"Entrypoint": []string{"/bin/sleep", "infinity"}, "Env": []string{"PATH=/bin"}},
		"rootfs": object{"type": "layers", "diff_ids": []any{layerBlob["digest"]}},
	})
	const manifests = "application/vnd.oci.image.manifest.v1+json"
	manifest := l.blob(manifests,
		object{"schemaVersion": 2, "mediaType": manifests, "config": config, "layers": []any{layerBlob}})
	l.file("index.json", object{"schemaVersion": 2, "manifests": []any{manifest}})
	l.file("oci-layout", object{"imageLayoutVersion": "1.0.0"})
	return l.err
}

type object = map[string]any

// layoutWriter writes an OCI layout and keeps the first error.
type layoutWriter struct {
	dir string
	err error
}

// blob writes bytes, or a value as JSON, and returns its descriptor.
func (l *layoutWriter) blob(mediaType string, content any) object {
	data := encode(content)
	sum := fmt.Sprintf("%x", sha256.Sum256(data))
	l.file("blobs/sha256/"+sum, data)
	return object{"mediaType": mediaType, "digest": "sha256:" + sum, "size": len(data)}
}

func (l *layoutWriter) file(name string, content any) {
	path := filepath.Join(l.dir, name)
	if l.err == nil {
		l.err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if l.err == nil {
		l.err = os.WriteFile(path, encode(content), 0o644)
	}
}

// encode returns bytes as they are, and a value as JSON.
func encode(content any) []byte {
	data, isBytes := content.([]byte)
	if !isBytes {
		data, _ = json.Marshal(content) // maps of strings and numbers
	}
	return data
}

func toolsLayer(busybox string) ([]byte, error) {
	program, err := os.ReadFile(busybox)
	if err != nil {
		return nil, err
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	headers := []*tar.Header{
		{Typeflag: tar.TypeDir, Name: "bin/", Mode: 0o755},
		{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777},
		{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755, Size: int64(len(program))},
	}
	for _, header := range headers {
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
	}
	if _, err := w.Write(program); err != nil {
		return nil, err
	}
	for _, name := range applets() {
		link := &tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + name, Linkname: "busybox", Mode: 0o777}
		if err := w.WriteHeader(link); err != nil {
			return nil, err
		}
	}
	err = w.Close()
	return layer.Bytes(), err
}
