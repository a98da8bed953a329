// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"go.yaml.in/yaml/v3"
)

// newRegistry starts a registry that answers to every name, and returns the options to call it.
func newRegistry(t *testing.T) []remote.Option {
	t.Helper()
	silent := log.New(io.Discard, "", 0)
	server := httptest.NewUnstartedServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(silent)))
	server.Config.ErrorLog = silent
	server.StartTLS()
	t.Cleanup(server.Close)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // #nosec G402 -- its certificate has another name
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return []remote.Option{remote.WithTransport(transport)}
}

// usedImages returns the images of the Deployments in release.yaml, as the cluster reads it.
func usedImages(t *testing.T, text string) map[string]bool {
	t.Helper()
	used := map[string]bool{}
	for documents := yaml.NewDecoder(strings.NewReader(text)); ; {
		var object struct {
			Kind string
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct{ Image string }
					}
				}
			}
		}
		if err := documents.Decode(&object); err == io.EOF {
			return used
		} else if err != nil {
			t.Fatal(err)
		}
		for _, container := range object.Spec.Template.Spec.Containers {
			used[container.Image] = true
		}
	}
}

// What release.yaml names can be pulled, for each platform, with its SBOM and its provenance.
func TestReleaseIsPulledByDigest(t *testing.T) {
	r := newRelease(t)
	options := newRegistry(t)
	must(t, r.push(options...))
	must(t, r.push(options...)) // as after a failure
	used := usedImages(t, read(t, r, manifests))
	if len(used) != 2 {
		t.Errorf("%s has the images %v, want two", manifests, used)
	}
	for image := range used {
		reference, err := name.NewDigest(image)
		if err != nil {
			t.Errorf("the image %s is not pinned: %v", image, err)
			continue
		}
		pulled, err := remote.Get(reference, options...)
		must(t, err)
		tagged, err := remote.Head(reference.Context().Tag(r.version), options...)
		must(t, err)
		if tagged.Digest != pulled.Digest {
			t.Errorf("%s is %s, want %s", r.version, tagged.Digest, reference)
		}
		if got := attached(t, reference, provenanceType, options); got != read(t, r, provenance) {
			t.Errorf("the provenance of %s is %q", reference, got)
		}
		for digest, platform := range platformsOf(t, pulled) {
			file := filepath.Base(reference.RepositoryStr()) + "-" + strings.ReplaceAll(platform, "/", "-") + ".spdx.json"
			if got := attached(t, reference.Digest(digest), sbomType, options); got != read(t, r, file) {
				t.Errorf("the SBOM of %s for %s is not %s", reference, platform, file)
			}
		}
	}
}

// platformsOf pulls an index or an image, and returns the platforms by digest.
func platformsOf(t *testing.T, pulled *remote.Descriptor) map[string]string {
	t.Helper()
	if !pulled.MediaType.IsIndex() {
		image, err := pulled.Image()
		must(t, err)
		must(t, validate.Image(image))
		config, err := image.ConfigFile()
		must(t, err)
		return map[string]string{pulled.Digest.String(): config.Platform().String()}
	}
	index, err := pulled.ImageIndex()
	must(t, err)
	must(t, validate.Index(index))
	manifest, err := index.IndexManifest()
	must(t, err)
	platforms := map[string]string{}
	for _, of := range manifest.Manifests {
		platforms[of.Digest.String()] = of.Platform.String()
	}
	return platforms
}

// attached returns the content of the one artifact of a type whose subject is the image.
func attached(t *testing.T, subject name.Digest, artifactType string, options []remote.Option) string {
	t.Helper()
	referrers, err := remote.Referrers(subject, options...)
	must(t, err)
	manifest, err := referrers.IndexManifest()
	must(t, err)
	found := slices.DeleteFunc(manifest.Manifests, func(of v1.Descriptor) bool { return of.ArtifactType != artifactType })
	if len(found) != 1 {
		t.Fatalf("%s has %d artifacts %s, want one", subject, len(found), artifactType)
	}
	artifact, err := remote.Image(subject.Digest(found[0].Digest.String()), options...)
	must(t, err)
	layers, err := artifact.Layers()
	must(t, err)
	content, err := layers[0].Compressed()
	must(t, err)
	text, err := io.ReadAll(content)
	must(t, err)
	return string(text)
}

func TestPushRefusesAnotherImage(t *testing.T) {
	if *made != "" {
		t.Skip("changes the release")
	}
	for name, test := range map[string]struct {
		change func(*testing.T, *release)
		says   string
	}{
		"that was built after release.yaml": {func(t *testing.T, r *release) {
			must(t, os.RemoveAll(filepath.Join(r.dir, "receiver")))
			writeLayout(t, r.dir, "receiver")
		}, "does not use the image receiver"},
		"under a version that was published": {func(t *testing.T, r *release) {
			must(t, os.RemoveAll(filepath.Join(r.dir, "receiver")))
			writeLayout(t, r.dir, "receiver")
			must(t, r.write())
		}, "exists and has other content"},
		"whose layers are damaged": {func(t *testing.T, r *release) {
			damage(t, filepath.Join(r.dir, "receiver"))
		}, "DIGEST_INVALID"},
		"with files that changed after SHA256SUMS": {func(t *testing.T, r *release) {
			must(t, r.writeFile("plumb-linux-amd64", []byte("another program")))
			must(t, r.writeFile(notes, []byte("other notes")))
		}, "notes.md, plumb-linux-amd64"},
		"with a file that SHA256SUMS lacks": {func(t *testing.T, r *release) {
			must(t, r.writeFile("extra.txt", []byte("extra")))
		}, "extra.txt"},
		"with a file that is gone": {func(t *testing.T, r *release) {
			must(t, os.Remove(filepath.Join(r.dir, "plumb-linux-amd64")))
		}, "plumb-linux-amd64"},
		"without its SBOM": {func(t *testing.T, r *release) {
			must(t, os.Remove(filepath.Join(r.dir, "receiver-linux-s390x.spdx.json")))
			must(t, r.write())
		}, "receiver-linux-s390x.spdx.json: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelease(t)
			options := newRegistry(t)
			if strings.Contains(test.says, "exists") {
				must(t, r.push(options...))
			}
			test.change(t, &r)
			if err := r.push(options...); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("it says %v, want %q", err, test.says)
			}
		})
	}
}

// damage changes a byte in a layer of the layout.
func damage(t *testing.T, path string) {
	t.Helper()
	index, err := layout.ImageIndexFromPath(path)
	must(t, err)
	manifest, err := index.IndexManifest()
	must(t, err)
	inner, err := index.ImageIndex(manifest.Manifests[0].Digest)
	must(t, err)
	images, err := inner.IndexManifest()
	must(t, err)
	image, err := inner.Image(images.Manifests[0].Digest)
	must(t, err)
	layers, err := image.Layers()
	must(t, err)
	digest, err := layers[0].Digest()
	must(t, err)
	blob := filepath.Join(path, "blobs", digest.Algorithm, digest.Hex)
	text, err := os.ReadFile(blob)
	must(t, err)
	must(t, os.WriteFile(blob, append(bytes.Clone(text[:len(text)-1]), text[len(text)-1]+1), 0o600))
}
