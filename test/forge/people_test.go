// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPermissions(t *testing.T) {
	w := newFixture(t, Options{})
	tok := w.token(w.inst, nil)
	for user, role := range map[string]string{"tri": "triage", "wri": "write", "mai": "maintain", "adm": "admin",
		"rea": "read"} {
		w.SetCollaborator("org/app", user, role)
	}
	w.AddUser("stranger")
	w.SetOrgMember("org", "member", false)
	w.SetOrgOwner("org", "boss")
	for user, want := range map[string]string{
		"rea": "204 200 read read", "tri": "204 200 read triage", "wri": "204 200 write write",
		"mai": "204 200 write maintain", "adm": "204 200 admin admin", "member": "204 200 read read",
		"boss": "204 200 admin admin", "stranger": "404 200 none none", "nobody": "404 404  ",
	} {
		is := w.do("GET", "/repos/org/app/collaborators/"+user, tok, nil)
		p := w.do("GET", "/repos/org/app/collaborators/"+user+"/permission", tok, nil)
		o := p.Object(t)
		got := fmt.Sprintf("%d %d %s %s", is.Status, p.Status, text(o, "permission"), text(o, "role_name"))
		if got != want {
			t.Errorf("%s: got %s, want %s", user, got, want)
		}
	}
	w.SetPrivate("org/app", false)
	if got := text(w.do("GET", "/repos/org/app/collaborators/stranger/permission", tok, nil).Object(t),
		"permission"); got != "read" {
		t.Errorf("a stranger on a public repository: %q, want read", got)
	}
}

func TestMembers(t *testing.T) {
	w := newFixture(t, Options{})
	w.SetOrgMember("org", "shown", true)
	w.SetOrgMember("org", "hidden", false)
	inside := w.token(w.inst, nil)
	w.SetPermissions(w.inst, map[string]string{"metadata": "read"})
	outside := w.token(w.inst, nil)
	w.SetPermissions(w.inst, map[string]string{"metadata": "read", "members": "read"})
	for name, tc := range map[string]struct {
		auth, user string
		status     int
	}{
		"an App with members:read sees a concealed member": {inside, "hidden", 204},
		"and that somebody is none":                        {inside, "nobody", 404},
		"one without is sent to the public members":        {outside, "hidden", 302},
	} {
		if r := w.do("GET", "/orgs/org/members/"+tc.user, tc.auth, nil); r.Status != tc.status {
			t.Errorf("%s: got %d, want %d", name, r.Status, tc.status)
		}
	}
	to := w.do("GET", "/orgs/org/members/shown", outside, nil).Header.Get("Location")
	if to != w.URL()+"/api/v3/orgs/org/public_members/shown" {
		t.Errorf("the redirect leads to %q", to)
	}
	for user, want := range map[string]int{"shown": 204, "hidden": 404} {
		if got := w.do("GET", "/orgs/org/public_members/"+user, outside, nil).Status; got != want {
			t.Errorf("public member %s: got %d, want %d", user, got, want)
		}
	}
	if in, out := len(w.do("GET", "/orgs/org/members", inside, nil).List(t)),
		len(w.do("GET", "/orgs/org/members", outside, nil).List(t)); in != 2 || out != 1 {
		t.Errorf("members listed: %d inside and %d outside, want 2 and 1", in, out)
	}
	if got := w.do("GET", "/orgs/nowhere/members/x", inside, nil).Status; got != 404 {
		t.Errorf("an unknown organisation: got %d, want 404", got)
	}
}

func TestTeams(t *testing.T) {
	w := newFixture(t, Options{})
	w.SetTeamMember("org", "crew", "in", "active")
	w.SetTeamMember("org", "crew", "invited", "pending")
	w.SetTeamMember("elsewhere", "crew", "in", "active")
	tok := w.token(w.inst, nil)
	is := func(path string) string {
		r := w.do("GET", "/orgs/"+path, tok, nil)
		if r.Status != 200 {
			return fmt.Sprint(r.Status)
		}
		return text(r.Object(t), "state") + text(r.Object(t), "slug")
	}
	for path, want := range map[string]string{
		"org/teams/crew": "crew", "org/teams/none": "404", "elsewhere/teams/crew": "404",
		"org/teams/crew/memberships/in": "active", "org/teams/CREW/memberships/IN": "active",
		"org/teams/crew/memberships/invited": "pending", "org/teams/crew/memberships/nobody": "404",
		"elsewhere/teams/crew/memberships/in": "404",
	} {
		if got := is(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	w.SetPermissions(w.inst, map[string]string{"metadata": "read"})
	if got := is("org/teams/crew/memberships/in"); got != "403" {
		t.Errorf("an App that may not read members: %s, want 403", got)
	}
}

func TestPullRequests(t *testing.T) {
	w := newFixture(t, Options{})
	tok := w.token(w.inst, nil)
	w.CreateRepo("mallory", "app", RepoOptions{Private: true, ForkOf: "org/app"})
	first := w.Commit("mallory/app", "patch", Change{Author: "mallory", Files: map[string]string{"evil": "1"}})
	if r := w.do("POST", "/repos/org/app/check-runs", tok,
		map[string]any{"name": "c", "head_sha": first}); r.Status != 422 {
		t.Errorf("a fork's commit before its pull request: got %d, want 422", r.Status)
	}
	w.OpenPullRequest(NewPull{Base: "org/app", Head: "mallory/app", HeadBranch: "patch", Author: "mallory"})
	second := w.Commit("mallory/app", "patch", Change{Author: "mallory", Files: map[string]string{"more": "2"}})
	if r := w.do("POST", "/repos/org/app/check-runs", tok,
		map[string]any{"name": "c", "head_sha": second}); r.Status != 201 {
		t.Errorf("a pull request's head can be checked in the base: got %d %s", r.Status, r.Body)
	}
	p := w.do("GET", "/repos/org/app/pulls/1", tok, nil).Object(t)
	head := p["head"].(map[string]any)
	got := fmt.Sprintf("%v, %v commits, %v files, %v, newest head %v, %v", p["state"], p["commits"], p["changed_files"],
		head["label"], head["sha"] == second, p["author_association"])
	if want := "open, 2 commits, 2 files, mallory:patch, newest head true, NONE"; got != want {
		t.Errorf("the pull request: got %s, want %s", got, want)
	}
	var files []string
	for _, f := range w.do("GET", "/repos/org/app/pulls/1/files", tok, nil).List(t) {
		files = append(files, text(f, "status")+" "+text(f, "filename"))
	}
	if diff := cmp.Diff([]string{"added evil", "added more"}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestPullRequestsOfCommits(t *testing.T) {
	w := newFixture(t, Options{})
	tok := w.token(w.inst, nil)
	first := w.Commit("org/app", "patch", Change{Files: map[string]string{"evil": "1"}})
	n := w.OpenPullRequest(NewPull{Base: "org/app", HeadBranch: "patch", Author: "mallory"})
	count := func(path string) int { return len(w.do("GET", "/repos/org/app/"+path, tok, nil).List(t)) }
	if a, b := count("commits/"+first+"/pulls"), count("commits/"+w.sha+"/pulls"); a != 1 || b != 0 {
		t.Errorf("pull requests of a commit in it and one before: %d and %d, want 1 and 0", a, b)
	}
	w.ClosePull("org/app", n)
	if open, closed := count("pulls"), count("pulls?state=closed&head=org:patch"); open != 0 || closed != 1 {
		t.Errorf("after closing: %d open, %d closed", open, closed)
	}
	if c := count("commits/" + first + "/pulls"); c != 0 {
		t.Errorf("a closed pull request that was not merged is not listed for its commit: %d", c)
	}
	w.ReopenPull("org/app", n)
	merge := w.MergePull("org/app", n, "alice")
	if a, b := count("commits/"+merge+"/pulls"), count("commits/"+first+"/pulls"); a != 1 || b != 1 {
		t.Errorf("the merged pull request of its merge and of its commit: %d and %d, want 1 and 1", a, b)
	}
	if r := w.do("GET", "/repos/org/app/contents/evil", tok, nil); r.Status != 200 {
		t.Errorf("the merge brought no file: %d", r.Status)
	}
}
