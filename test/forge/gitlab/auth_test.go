// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTokens(t *testing.T) {
	w := newFixture(t, Options{})
	expired := w.CreateToken(NewToken{Project: app, Expires: time.Now().Add(-time.Second)}).Value
	revoked := w.CreateToken(NewToken{Project: app}).Value
	w.RevokeToken(revoked)
	oauth := w.CreateToken(NewToken{User: "dora", OAuth: true}).Value
	w.SetMember("org", "dora", Developer)
	blocked := w.CreateToken(NewToken{User: "mallory"}).Value
	w.SetMember(app, "mallory", Owner)
	w.SetBlocked("mallory", true)
	group := w.CreateToken(NewToken{Group: "org", Level: Reporter}).Value
	for name, tc := range map[string]struct {
		header http.Header
		want   string
	}{
		"PRIVATE-TOKEN works":                {http.Header{"Private-Token": {w.token}}, "200"},
		"Bearer works":                       {http.Header{"Authorization": {"Bearer " + w.token}}, "200"},
		"an OAuth token is a Bearer":         {http.Header{"Authorization": {"Bearer " + oauth}}, "200"},
		"an OAuth token is no PRIVATE-TOKEN": {http.Header{"Private-Token": {oauth}}, "401 401 Unauthorized"},
		"a group's token works below it":     {http.Header{"Private-Token": {group}}, "200"},
		"nobody does not see the project":    {http.Header{}, "404 404 Project Not Found"},
		"an unknown token is refused":        {http.Header{"Private-Token": {"glpat-nonsense"}}, "401 401 Unauthorized"},
		"an expired token is refused":        {http.Header{"Private-Token": {expired}}, "401 invalid_token"},
		"a revoked token is refused":         {http.Header{"Private-Token": {revoked}}, "401 invalid_token"},
		"a blocked user is refused": {
			http.Header{"Private-Token": {blocked}}, "403 403 Forbidden - Your account has been blocked.",
		},
	} {
		r := w.doWith("GET", at, tc.header, nil)
		if got := strings.TrimSpace(fmt.Sprint(r.Status, " ", r.said())); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

func TestScopesToRead(t *testing.T) {
	w := newFixture(t, Options{})
	for scope, want := range map[string]string{
		ScopeAPI:            "200 200 200",
		ScopeReadAPI:        "200 200 200",
		ScopeReadRepository: "403 200 403",
		ScopeReadUser:       "403 403 200",
	} {
		tok := w.CreateToken(NewToken{Project: app, Scopes: []string{scope}}).Value
		var got []string
		for _, path := range []string{at + "/repository/tree", at + "/repository/files/README%2Emd?ref=main", api + "/user"} {
			got = append(got, fmt.Sprint(w.do("GET", path, tok, nil).Status))
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: tree, file, user (-want +got):\n%s", scope, diff)
		}
	}
}

func TestProjectVisibility(t *testing.T) {
	w := newFixture(t, Options{})
	stranger := w.CreateToken(NewToken{User: "sam"}).Value
	guest := w.CreateToken(NewToken{User: "gus"}).Value
	w.SetMember("org", "gus", Guest)
	for visibility, want := range map[string]string{
		Private:  "nobody 404 404, stranger 404 404, guest 200 403",
		Internal: "nobody 404 404, stranger 200 200, guest 200 200",
		Public:   "nobody 200 200, stranger 200 200, guest 200 200",
	} {
		w.SetVisibility(app, visibility)
		var got []string
		for _, who := range []struct{ name, token string }{{"nobody", ""}, {"stranger", stranger}, {"guest", guest}} {
			got = append(got, fmt.Sprint(who.name, " ", w.do("GET", at, who.token, nil).Status, " ",
				w.do("GET", at+"/repository/tree", who.token, nil).Status))
		}
		if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s: project and code (-want +got):\n%s", visibility, diff)
		}
	}
	if r := w.do("GET", at+"/members/all", "", nil); r.Status != 401 {
		t.Errorf("members for nobody: %d", r.Status)
	}
}

func TestRateLimit(t *testing.T) {
	at0 := time.Unix(1_800_000_030, 0)
	w := newFixture(t, Options{RateLimit: 2, Now: func() time.Time { return at0 }})
	var got []string
	for range 3 {
		r := w.get("")
		h := r.Header
		got = append(got,
			strings.TrimSpace(fmt.Sprint(r.Status, " ", h.Get("RateLimit-Limit"), " ", h.Get("RateLimit-Remaining"), " ",
				h.Get("RateLimit-Reset"), " ", h.Get("Retry-After"))))
		if r.Status == 429 && (string(r.Body) != "Retry later\n" || h.Get("Content-Type") != "text/plain") {
			t.Errorf("the limit's answer: %s %q", h.Get("Content-Type"), r.Body)
		}
	}
	want := []string{"200 2 1 1800000060", "200 2 0 1800000060", "429 2 0 1800000060 30"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("three calls (-want +got):\n%s", diff)
	}
	other := w.CreateToken(NewToken{Project: app})
	if r := w.do("GET", at, other.Value, nil); r.Status != 200 {
		t.Errorf("another user has a budget of its own: %d", r.Status)
	}
}
