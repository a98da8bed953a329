// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/x509"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func TestTheBaseIsTheSameEveryTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "img")
	first, err := write(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := write(path)
	if err != nil {
		t.Fatal(err)
	}
	other, err := write(filepath.Join(t.TempDir(), "img"))
	if err != nil {
		t.Fatal(err)
	}
	if first != again || first != other {
		t.Errorf("digests %s, %s, %s differ", first, again, other)
	}
	index, err := layout.ImageIndexFromPath(path)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 5 {
		t.Errorf("the layout holds %d manifests after two writes, want four images and their index", len(manifest.Manifests))
	}
	base, err := index.ImageIndex(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(base); err != nil {
		t.Error(err)
	}
}

func TestTheCertificatesCanBeRead(t *testing.T) {
	roots, err := trusted()
	if err != nil {
		t.Fatal(err)
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(roots) || pool.Equal(x509.NewCertPool()) {
		t.Error("no certificate in the bundle")
	}
}

// The kubelet cannot tell that a user given by name is not root, and refuses it for a pod with
// runAsNonRoot.
func TestTheUserIsANumberOtherThanRoot(t *testing.T) {
	id, _, _ := strings.Cut(user, ":")
	if n, err := strconv.Atoi(id); err != nil || n == 0 {
		t.Errorf("the image runs as %q", user)
	}
}
