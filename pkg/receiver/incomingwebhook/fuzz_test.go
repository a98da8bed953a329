// SPDX-License-Identifier: Apache-2.0

package incomingwebhook

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// Whatever is sent, a request is refused with a message, or becomes an event that has no secret.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"repository":"app","branch":"main","pipelinerun":"build","secret":"s3cret-value","params":{"a":"b"}}`,
		`{"repository":"app","namespace":"ci","branch":"release/1","pipelinerun":"build-","secret":"s3cret-value"}`,
		`{"params":{"a":1}}`, `{"secret":["x"]}`, `[]`, `null`, `{}{}`, "\xff", `{"params":null}`,
	} {
		f.Add([]byte(seed), "", "")
		f.Add([]byte(seed), "Bearer s3cret-value", "key-1")
	}
	to := Target{Repository: &pacv1alpha1.Repository{}, Provider: "github", Host: "git.example"}
	rules := []pacv1alpha1.IncomingRule{{Incoming: pacv1alpha1.Incoming{Targets: []string{"main", "^v.*$", "release/*"}}}}
	f.Fuzz(func(t *testing.T, body []byte, authorization, key string) {
		header := http.Header{}
		header.Set("Authorization", authorization)
		header.Set("Idempotency-Key", key)
		request, refused := Read(header, body)
		if refused != nil {
			if refused.Status < 400 || refused.Status > 499 || refused.Message == "" {
				t.Fatalf("%+v", refused)
			}
			return
		}
		if request.Repository == "" || request.Branch == "" || request.Pipeline == "" || request.Secret == "" {
			t.Fatalf("accepted %+v", request)
		}
		Rule(rules, request.Branch)
		spec, stored := request.Event(to, time.Unix(1, 0))
		var back map[string]any
		if json.Unmarshal(stored, &back) != nil || back["secret"] != nil {
			t.Fatalf("stored %s", stored)
		}
		if spec.EventName() == "" || !strings.HasPrefix(spec.BaseRef, "refs/heads/") {
			t.Fatalf("%+v", spec)
		}
	})
}
