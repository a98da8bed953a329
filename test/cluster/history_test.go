// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// Every version of the chosen resources is reported once, also when etcd breaks the connection or
// answers with an error; a gap is an error.
func TestHistoryHasNoGap(t *testing.T) {
	t.Parallel()
	stored := func(revision int, kind, key, value string) string {
		text := base64.StdEncoding.EncodeToString
		return fmt.Sprintf(`{"type":%q,"kv":{"key":%q,"value":%q,"mod_revision":"%d"}}`, kind, text([]byte(key)),
			text([]byte(value)), revision)
	}
	message := func(events ...string) string {
		return `{"result":{"header":{"revision":"9"},"events":[` + strings.Join(events, ",") + `]}}`
	}
	const created = `{"result":{"header":{"revision":"5"},"created":true}}`
	answers := []string{
		created, // of Follow
		created + message(stored(6, "PUT", "/registry/a/runs/ns/x", "1"), stored(7, "PUT", "/registry/pods/ns/x", "2"),
			stored(8, "PUT", "/registry/z/runs/ns/y", "3")),
		`{"error":{"message":"no leader"}}`,
		created + message(stored(8, "PUT", "/registry/z/runs/ns/y", "3"), stored(9, "DELETE", "/registry/a/runs/ns/x", "")),
		`{"result":{"header":{"revision":"20"},"canceled":true,"cancel_reason":"compacted"}}`,
	}
	var asked []string // one request follows the other
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Create struct {
				Key   []byte      `json:"key"`
				End   []byte      `json:"range_end"`
				Start json.Number `json:"start_revision"`
			} `json:"create_request"`
		}
		_ = json.NewDecoder(r.Body).Decode(&request)
		asked = append(asked, fmt.Sprintf("%s %s %s %s", r.URL.Path, request.Create.Key, request.Create.End,
			request.Create.Start))
		_, _ = w.Write([]byte(answers[len(asked)-1]))
	}))
	defer server.Close()
	var told []string
	h, err := follow(within(t, time.Minute), server.URL, []string{"z/runs", "a/runs"}, func(v Version) {
		told = append(told, fmt.Sprintf("%d %s %s/%s %s", v.Revision, v.Resource, v.Namespace, v.Name, v.Object))
	})
	must(t, err)
	says(t, h.Run(within(t, time.Minute)), "versions are missing from resource version 10 on: compacted")
	if want := []string{"6 a/runs ns/x 1", "8 z/runs ns/y 3", "9 a/runs ns/x "}; !slices.Equal(told, want) {
		t.Errorf("told of %q, want %q", told, want)
	}
	path := "/v3/watch /registry/a/runs/ /registry/z/runs0 "
	if want := []string{path + "0", path + "6", path + "9", path + "9", path + "10"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
}
