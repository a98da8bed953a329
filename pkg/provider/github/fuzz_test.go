// SPDX-License-Identifier: Apache-2.0

package github

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/delivery"
	"github.com/plumbline-ci/plumbline/pkg/provider/providertest"
)

// Every delivery gives either an event that the API server can store, about the repository that
// Peek named, or a fault that is not retried.
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
		event, _, _ := strings.Cut(filepath.Base(file), "-")
		event = map[string]string{
			"push": "push", "pull": "pull_request", "comment": "issue_comment", "check": "check_run", "commit": "commit_comment",
		}[event]
		var compact bytes.Buffer
		if err := json.Compact(&compact, body); err != nil {
			f.Fatal(err)
		}
		f.Add(event, compact.Bytes())
		if !strings.Contains(file, "push-branch") && !strings.Contains(file, "opened-fork") && event != "issue_comment" &&
			event != "check_run" && event != "commit_comment" {
			continue
		}
		for _, old := range []string{`"ref":"`, `"default_branch":"`, `"url":"`, `"name":"`, `"login":"`,
			`"html_url":"https://`, `"title":"`, `"head_branch":"`, `"external_id":"`} {
			for _, text := range []string{strings.Repeat("x", 3000), strings.Repeat("x", 300), `\u0000`, "\xff", `\ud800`} {
				f.Add(event, bytes.ReplaceAll(compact.Bytes(), []byte(old), []byte(old+text)))
			}
		}
		f.Add(event, bytes.Replace(compact.Bytes(), []byte(`"repository":`), []byte(`"Repository":{},"repository":`), 1))
		f.Add(event, bytes.ReplaceAll(compact.Bytes(), []byte(`{`), []byte(`[`)))
	}
	f.Fuzz(func(t *testing.T, event string, body []byte) {
		h := headers(event)
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
		if peekErr != nil || spec.Project.URL != origin.URL ||
			origin.App != (spec.InstallationID != 0) && spec.InstallationID != 0 {
			t.Errorf("Peek says %+v, %v; Decode %+v", origin, peekErr, spec)
		}
		providertest.Storable(t, spec)
	})
}

// Only the HMAC of the body with a non-empty secret verifies.
func FuzzVerify(f *testing.F) {
	for _, signature := range []string{"", "sha256=", "sha1=00", "sha256=zz", "sha256=00", "SHA256=00",
		"sha256=" + strings.Repeat("0", 64), "good", "GOOD", "good "} {
		for _, secret := range []string{"", " ", "key", "key\n"} {
			f.Add(signature, []byte(`{"a":1}`), []byte(secret))
		}
	}
	f.Fuzz(func(t *testing.T, signature string, body, secret []byte) {
		mac := hmac.New(sha256.New, bytes.TrimSpace(secret))
		mac.Write(body)
		want := "sha256=" + hex.EncodeToString(mac.Sum(nil))
		signature = strings.NewReplacer("good", want, "GOOD",
			"sha256="+strings.ToUpper(want[len("sha256="):])).Replace(signature)
		valid := len(bytes.TrimSpace(secret)) > 0 && strings.HasPrefix(signature, "sha256=") &&
			strings.EqualFold(signature, want)
		err := webhook{}.Verify(http.Header{headerSignature: {signature}}, body, secret)
		if (err == nil) != valid {
			t.Errorf("signature %q of %q with %q: %v, want valid %t", signature, body, secret, err, valid)
		}
		if f := fault.Of(err); err != nil && (f.Class != fault.Operator || f.Reason != "Unauthenticated") {
			t.Errorf("%v is not an Operator fault with the reason Unauthenticated", err)
		}
		webhook{}.Claims(http.Header{headerSignature: {signature}, headerEvent: {signature}})
	})
}

// An accepted address of a file on GitHub names a repository and a path below it, and nothing else.
func FuzzAddress(f *testing.F) {
	for _, address := range []string{
		"https://git.example/acme/app/blob/main/a.yaml", "https://raw.git.example/acme/app/refs/heads/a%2Fb/c/d.yaml",
		"https://git.example/acme/app/raw/x/../../y",
		"https://git.example/acme/app/blob/main/%2e%2e/x", "https://git.example/acme/..%2f/blob/main/x",
		"https://u@git.example/a/b/blob/c/d", "https://git.example:443/a/b/blob/c/d?x#y",
	} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, ok := parseAddress("https://git.example", text)
		if !ok {
			return
		}
		if !delivery.ValidName(at.owner, at.name) || at.ref == "" || at.path == "" || path.IsAbs(at.path) ||
			path.Clean(at.path) != at.path || strings.Contains(at.path, "..") {
			t.Errorf("%q became %+v", text, at)
		}
	})
}
