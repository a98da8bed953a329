// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/delivery"
	"github.com/plumbline-ci/plumbline/pkg/provider/providertest"
)

// Every delivery gives either an event that the API server can store, about the project that Peek
// named, or a fault that is not retried.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal(err, files)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		kind, _, _ := strings.Cut(filepath.Base(file), "-")
		event := map[string]string{"push": eventPush, "tag": eventTag, "mr": eventMergeRequest, "note": eventNote}[kind]
		var compact bytes.Buffer
		if err := json.Compact(&compact, body); err != nil {
			f.Fatal(err)
		}
		f.Add(event, compact.Bytes())
		if !strings.Contains(file, "push-branch") && !strings.Contains(file, "open-fork") {
			continue
		}
		for _, old := range []string{
			`"ref":"`, `"default_branch":"`, `"url":"`, `"path_with_namespace":"`, `"username":"`, `"user_username":"`,
			`"web_url":"https://`,
			`"title":"`, `"source_branch":"`, `"message":"`,
		} {
			for _, text := range []string{strings.Repeat("x", 3000), strings.Repeat("x", 300), `\u0000`, "\xff", `\ud800`} {
				f.Add(event, bytes.ReplaceAll(compact.Bytes(), []byte(old), []byte(old+text)))
			}
		}
		for old, long := range map[string]string{"acme/team/app": strings.Repeat("x/", 600) + "app",
			"team/app": "team/" + strings.Repeat("x", 300), "gitlab.example.com": strings.Repeat("x", 300)} {
			f.Add(event, bytes.ReplaceAll(compact.Bytes(), []byte(old), []byte(long)))
		}
		f.Add(event, bytes.Replace(compact.Bytes(), []byte(`"project":`), []byte(`"Project":{},"project":`), 1))
		f.Add(event, bytes.ReplaceAll(compact.Bytes(), []byte(`{`), []byte(`[`)))
	}
	f.Fuzz(func(t *testing.T, event string, body []byte) {
		h := headers(event)
		h.Del("X-Gitlab-Instance")
		origin, peekErr := webhook{}.Peek(h, body)
		if peekErr != nil && !fault.Is(peekErr, fault.Invalid) {
			t.Errorf("Peek: %v, want an Invalid fault", peekErr)
		}
		spec, err := webhook{}.Decode(h, body)
		if err != nil {
			if !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Ignored) {
				t.Errorf("Decode: %v, want an Invalid or Ignored fault", err)
			}
			return
		}
		if peekErr != nil || spec.Project.URL != origin.URL {
			t.Errorf("Peek says %+v, %v; Decode %+v", origin, peekErr, spec)
		}
		providertest.Storable(t, spec)
	})
}

// An accepted address of a file on GitLab names a project and a path below it, and nothing else.
func FuzzAddress(f *testing.F) {
	for _, address := range []string{
		"https://git.example/sub/acme/app/-/blob/main/a.yaml",
		"https://git.example/sub/a/b/c/-/raw/refs/heads/a%2Fb/c/d.yaml",
		"https://git.example/sub/acme/app/-/raw/x/../../y", "https://git.example/sub/acme/app/-/blob/main/%2e%2e/x",
		"https://git.example/sub/acme/..%2f/-/blob/main/x", "https://u@git.example/sub/a/b/-/blob/c/d",
		"https://git.example:443/sub/a/b/-/blob/c/d?x#y",
	} {
		f.Add(address)
	}
	base, err := url.Parse("https://git.example/sub")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, ok := parseAddress(base, text)
		if !ok {
			return
		}
		if !delivery.ValidPath(at.project) || at.ref == "" || at.path == "" || path.IsAbs(at.path) ||
			path.Clean(at.path) != at.path || strings.Contains(at.path, "..") {
			t.Errorf("%q became %+v", text, at)
		}
	})
}
