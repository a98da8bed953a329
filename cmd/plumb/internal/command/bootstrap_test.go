// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/test/forge"
)

// browser is the terminal of plumb bootstrap: it opens the printed address, and confirms.
type browser struct {
	*testing.T
	shown bytes.Buffer
}

var (
	printed = regexp.MustCompile(`Open (\S+) in a browser`)
	button  = regexp.MustCompile(`action="([^"]+)".*name="manifest" value="([^"]+)"`)
)

func (b *browser) Write(text []byte) (int, error) {
	if found := printed.FindSubmatch(text); found != nil {
		go b.confirm(string(found[1]))
	}
	return b.shown.Write(text)
}

func (b *browser) confirm(address string) {
	resp, err := http.Get(address)
	if err != nil {
		b.Error(err)
		return
	}
	page, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	found := button.FindStringSubmatch(string(page))
	resp, err = http.PostForm(html.UnescapeString(found[1]), url.Values{"manifest": {html.UnescapeString(found[2])}})
	if err != nil {
		b.Error(err)
		return
	}
	_ = resp.Body.Close()
}

const createdSecret = `{"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "plumbline-github-app"}}`

// bootstrapAt registers an App at the forge of the tests, with an API server.
func bootstrapAt(t *testing.T, dir string, answer func(r *http.Request) (int, string)) (code int, out, said string) {
	t.Helper()
	g := forge.New(forge.Options{})
	must(t, g.Start())
	t.Cleanup(func() { _ = g.Close() })
	b, errs := &browser{T: t}, &bytes.Buffer{}
	code = Run(t.Context(), Process{
		Args: []string{
			"plumb",
			"bootstrap",
			"github",
			"--organization=acme",
			"--webhook-url=https://hooks.example.com/",
			"--github-url=" + g.URL(),
			"--url=https://github.com/acme/app",
			"--namespace=team-a",
			"--kubeconfig=" + kubeconfigOf(t, answer),
		},
		Dir: dir, In: strings.NewReader(""), Out: b, Err: errs, Version: devel,
	})
	return code, b.shown.String(), errs.String()
}

// The App exists from then on, so the next step must be known whatever fails afterwards.
func TestBootstrapSaysWhereToInstallTheAppThoughALaterStepFails(t *testing.T) {
	code, out, said := bootstrapAt(t, t.TempDir(), func(r *http.Request) (int, string) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets") {
			return http.StatusCreated, createdSecret
		}
		return http.StatusNotFound, notFoundStatus
	})
	if code != exitTool || !strings.Contains(out, "/apps/plumbline-acme/installations/new") ||
		!strings.Contains(said, "set github-url: ") || strings.Contains(out+said, "PRIVATE KEY") {
		t.Errorf("exit %d: %s%s", code, out, said)
	}
}

func TestBootstrapSavesTheCredentialsIfTheSecretCannotBeCreated(t *testing.T) {
	dir := t.TempDir()
	code, out, said := bootstrapAt(t, dir, func(r *http.Request) (int, string) {
		if r.URL.Query().Get("dryRun") != "" {
			return http.StatusCreated, createdSecret
		}
		return refusedBy(r)
	})
	files, err := filepath.Glob(filepath.Join(dir, "plumbline-github-app-*.yaml"))
	if err != nil || len(files) != 1 || code != exitTool || !strings.Contains(said, "kubectl apply -f "+files[0]) {
		t.Fatalf("exit %d, files %v: %s%s", code, files, out, said)
	}
	if info, err := os.Stat(
		files[0],
	); err != nil || info.Mode().Perm() != 0o600 ||
		strings.Contains(out+said, "PRIVATE KEY") {
		t.Errorf("%v, %v: %s%s", info, err, out, said)
	}
}
