// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestStatuses(t *testing.T) {
	w := newFixture(t, Options{})
	full := w.CreateToken(NewToken{User: "bot", Repo: "org/app"})
	reads := w.CreateToken(NewToken{User: "bot", Repo: "org/app", Permissions: map[string]string{"contents": "read"}})
	guest := w.CreateToken(NewToken{User: "guest", Repo: "org/app"})
	w.SetCollaborator("org/app", "guest", "read")
	w.CreateRepo("org", "other", RepoOptions{Private: true})
	elsewhere := w.CreateToken(NewToken{User: "bot", Repo: "org/other"})
	good := map[string]any{"state": "pending", "context": "CI", "description": strings.Repeat("é", 140)}
	with := func(field string, value any) map[string]any {
		body := map[string]any{field: value}
		for k, v := range good {
			if k != field {
				body[k] = v
			}
		}
		return body
	}
	for name, tc := range map[string]struct {
		token  string
		sha    string
		body   any
		status int
		says   string
	}{
		"a good one":                        {full, w.sha, good, 201, ""},
		"a state that GitHub does not have": {full, w.sha, with("state", "cancelled"), 422, "state is not included"},
		"a long description": {full, w.sha, with("description", strings.Repeat("é", 141)), 422,
			"too long (maximum is 140 characters)"},
		"an emoji":                          {full, w.sha, with("description", "💥"), 422, "doesn't accept 4-byte Unicode"},
		"a link that is none":               {full, w.sha, with("target_url", "console"), 422, "target_url"},
		"an unknown commit":                 {full, strings.Repeat("0", 40), good, 422, "No commit found for SHA"},
		"a token without the permission":    {reads, w.sha, good, 403, "not accessible by personal access token"},
		"a user who may only read":          {guest, w.sha, good, 404, "Not Found"},
		"a token of another repository":     {elsewhere, w.sha, good, 404, "Not Found"},
		"a token that GitHub does not know": {"github_pat_x", w.sha, good, 401, "Bad credentials"},
	} {
		got := w.do("POST", "/repos/org/app/statuses/"+tc.sha, "Bearer "+tc.token, tc.body)
		if got.Status != tc.status || !strings.Contains(string(got.Body), tc.says) {
			t.Errorf("%s: %d %s, want %d with %q", name, got.Status, got.Body, tc.status, tc.says)
		}
	}
	for i := range maxStatuses {
		context := map[bool]string{true: "CI", false: "ci"}[i%2 == 0] // the case does not matter
		last := w.do("POST", "/repos/org/app/statuses/"+w.sha, "Bearer "+full, with("context", context))
		if full := i == maxStatuses-1; full != (last.Status == 422) ||
			full && !strings.Contains(string(last.Body), "reached the maximum number of statuses") {
			t.Fatalf("status %d: %d %s", i+2, last.Status, last.Body)
		}
	}
	all := w.StatusesFor("org/app", w.sha)
	list := w.do("GET", "/repos/org/app/commits/"+w.sha+"/statuses?per_page=1", "Bearer "+full, nil)
	if len(all) != maxStatuses || !strings.Contains(string(list.Body), fmt.Sprint(all[len(all)-1].ID)) {
		t.Errorf("%d statuses, and the list begins %s, want the newest", len(all), list.Body)
	}
}

// A user's token says who it is of and when it ends, and reads permissions if the user may write.
func TestTokenOfUser(t *testing.T) {
	w := newFixture(t, Options{})
	at := time.Now().Add(time.Hour)
	token := w.CreateToken(NewToken{User: "bot", Repo: "org/app", Expires: at})
	self := w.do("GET", "/user", "Bearer "+token, nil)
	if login := text(self.Object(t), "login"); login != "bot" ||
		self.Header.Get(expiryHeader) != at.UTC().Format("2006-01-02 15:04:05 MST") {
		t.Errorf("%s, which ends %q", login, self.Header.Get(expiryHeader))
	}
	asked := func() int {
		return w.do("GET", "/repos/org/app/collaborators/bot/permission", "Bearer "+token, nil).Status
	}
	if got := asked(); got != 200 {
		t.Errorf("with write access: %d", got)
	}
	w.SetCollaborator("org/app", "bot", "read")
	if got := asked(); got != 403 {
		t.Errorf("with read access: %d, want 403", got)
	}
	w.ExpireToken(token, time.Now().Add(-time.Second))
	if got := asked(); got != 401 {
		t.Errorf("after its end: %d, want 401", got)
	}
}

// A repository's own webhook has another body and other headers than the App's for one event.
func TestDeliveryOfHook(t *testing.T) {
	w := newFixture(t, Options{})
	w.AddHook("org/app", "hush")
	event := PushEvent{Repo: "org/app", Ref: "refs/heads/main"}
	for id, target := range map[int64]string{0: "integration", OfHook: "repository"} {
		event.AppID = id
		d := w.PushDelivery(event)
		if got := d.Header.Get("X-GitHub-Hook-Installation-Target-Type"); got != target ||
			strings.Contains(string(d.Body), `"installation"`) != (target == "integration") {
			t.Errorf("%s: %s", target, d.Body)
		}
	}
}
