// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// The files that the stage inside applies.
const (
	tektonManifests    = "tekton.yaml"
	plumblineManifests = "plumbline.yaml"
)

func (w *workshop) manifests(ctx context.Context) error {
	digests, err := w.digests()
	if err != nil {
		return err
	}
	tekton, err := cluster.TektonManifests(ctx)
	if err != nil {
		return err
	}
	// Tekton's own containers in runs may then run in restricted namespaces.
	if err := installation.Configure(tekton, "feature-flags", "set-security-context", "true"); err != nil {
		return err
	}
	text, err := withImages(tekton, digests)
	if err != nil {
		return err
	}
	plumbline, err := w.installManifests(ctx, digests)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(w.dir, tektonManifests), text, 0o600),
		os.WriteFile(filepath.Join(w.dir, plumblineManifests), plumbline, 0o600))
}

// authorities is the ConfigMap with the certificate authority of the Git service.
const authorities = "git-authorities"

// installManifests returns what `helm install` applies, by the chart and its values.
func (w *workshop) installManifests(ctx context.Context, digests map[string]string) ([]byte, error) {
	values, err := yaml.Marshal(object{
		"image": object{
			"registry": "node.invalid",
			"digests":  object{"receiver": digests["receiver"], "controller": digests["controller"]},
		},
		"settings":       object{"github-url": "https://" + forgeAddress},
		"caCertificates": object{"configMap": authorities},
	})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(w.dir, "values.yaml")
	if err := os.WriteFile(file, values, 0o600); err != nil {
		return nil, err
	}
	return w.command(ctx, "hack/tools/chart", "go", "run", ".", "template", "-n", plumblineNamespace, "-f", file)
}

// digests has the digest of each image in dir/images, by the name of its folder.
func (w *workshop) digests() (map[string]string, error) {
	folders, err := filepath.Glob(filepath.Join(w.dir, "images", "*"))
	if err != nil {
		return nil, err
	}
	digests := map[string]string{}
	for _, folder := range folders {
		data, err := os.ReadFile(filepath.Join(folder, "index.json"))
		if err != nil {
			return nil, err
		}
		var index struct {
			Manifests []struct{ Digest string }
		}
		if err := json.Unmarshal(data, &index); err != nil {
			return nil, fmt.Errorf("%s: %w", folder, err)
		}
		if len(index.Manifests) != 1 {
			return nil, fmt.Errorf("%s has %d manifests, want 1", folder, len(index.Manifests))
		}
		digests[filepath.Base(folder)] = index.Manifests[0].Digest
	}
	return digests, nil
}

// built matches an image that ko builds; shell is the one image of Tekton's manifests that is not.
var (
	built = regexp.MustCompile(`ko://([\w./-]+)`)
	shell = regexp.MustCompile(`cgr\.dev/chainguard/busybox@sha256:[0-9a-f]+`)
)

// withImages encodes objects and replaces their images by those in the node's store, by digest.
func withImages(objects []*unstructured.Unstructured, digests map[string]string) ([]byte, error) {
	text, err := installation.Encode(objects)
	if err != nil {
		return nil, err
	}
	var unknown []string
	replaced := built.ReplaceAllFunc(text, func(image []byte) []byte {
		name := filepath.Base(string(image))
		if strings.Contains(string(image), "tektoncd/") {
			name = "tekton-" + name
		}
		if digests[name] == "" {
			unknown = append(unknown, string(image))
		}
		return []byte(reference(name, digests[name]))
	})
	if len(unknown) > 0 {
		return nil, fmt.Errorf("no image was built for %v", unknown)
	}
	return shell.ReplaceAll(replaced, []byte(toolsImage)), nil
}

// reference is the name of an image in the node's store.
func reference(name, digest string) string { return "node.invalid/" + name + "@" + digest }
