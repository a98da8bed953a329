// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMembers(t *testing.T) {
	w := newFixture(t, Options{})
	w.SetMember("org", "ann", Owner)
	w.SetMember("org/team", "ben", Reporter)
	w.SetMember(app, "ben", Developer)
	w.SetMember(app, "cat", Guest)
	w.SetMember(app, "dan", Maintainer)
	w.SetBlocked("dan", true)
	w.SetMember(app, "eve", Owner)
	w.SetMember(app, "eve", NoAccess)
	of := func(name string) string {
		r := w.get("/members/all/" + itoa(w.AddUser(name).ID))
		if r.Status != 200 {
			return fmt.Sprint(r.Status, " ", r.said())
		}
		m := r.Object(t)
		return fmt.Sprint(m["access_level"], " ", m["state"])
	}
	for name, want := range map[string]string{
		"ann": "50 active", "ben": "30 active", "cat": "10 active", "dan": "40 blocked", "eve": "404 404 Not found",
		"zoe": "404 404 Not found",
	} {
		if got := of(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	var names []string
	for _, m := range w.get("/members/all?query=n").List(t) {
		names = append(names, text(m, "username"))
	}
	if diff := cmp.Diff([]string{"ann", "ben", "dan"}, names); diff != "" {
		t.Errorf("members with an n (-want +got):\n%s", diff)
	}
}

func TestOwnerOfPersonalProject(t *testing.T) {
	w := newFixture(t, Options{})
	fork := w.CreateProject("eve/app", ProjectOptions{ForkOf: app})
	tok := w.CreateToken(NewToken{User: "eve"})
	p := w.do("GET", api+"/projects/"+itoa(fork.ID), tok.Value, nil).Object(t)
	parent := p["forked_from_project"].(map[string]any)
	if text(p, "path_with_namespace") != "eve/app" || parent["id"] != float64(w.project.ID) ||
		text(p, "web_url") != fork.WebURL ||
		text(p, "visibility") != Private || text(p, "default_branch") != "main" {
		t.Errorf("a fork: %v", p)
	}
	if r := w.do("GET", api+"/projects/eve%2Fapp", w.token, nil); r.Status != 404 {
		t.Errorf("a private fork for the parent's bot: %d", r.Status)
	}
}

func TestUserOfToken(t *testing.T) {
	w := newFixture(t, Options{ExternalURL: "https://gitlab.example.com"})
	me := w.do("GET", api+"/user", w.token, nil).Object(t)
	if me["bot"] != true || me["id"] != float64(w.bot.ID) ||
		!strings.HasPrefix(text(me, "username"), "project_"+itoa(w.project.ID)+"_bot_") {
		t.Errorf("the bot: %v", me)
	}
	if text(me, "web_url") != "https://gitlab.example.com/"+w.bot.Username ||
		w.project.WebURL != "https://gitlab.example.com/"+app {
		t.Errorf("web URLs: %v, %s", me["web_url"], w.project.WebURL)
	}
}

func TestMembersOfGroups(t *testing.T) {
	w := newFixture(t, Options{})
	w.CreateGroup("org/team/sub")
	w.CreateGroup("secret")
	w.SetMember("org", "ann", Owner)
	w.SetMember("org/team/sub", "ben", Guest)
	w.SetMember(app, "cat", Developer)
	w.SetMember("secret", "zoe", Guest)
	tok := w.CreateToken(NewToken{User: "ann"}).Value
	names := func(path string) string {
		r := w.do("GET", api+"/groups/"+path+"/members/all", tok, nil)
		if r.Status != 200 {
			return fmt.Sprint(r.Status, " ", r.said())
		}
		var all []string
		for _, m := range r.List(t) {
			all = append(all, text(m, "username"))
		}
		return strings.Join(all, " ")
	}
	for path, want := range map[string]string{
		"org%2Fteam%2Fsub": "ann ben", "org": "ann", "secret": "404 404 Group Not Found",
		"nowhere": "404 404 Group Not Found",
	} {
		if got := names(path); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	if got := len(w.do("GET", api+"/groups/org%2Fteam%2Fsub/members/all?query=BE", tok, nil).List(t)); got != 1 {
		t.Errorf("%d members with a be, want 1", got)
	}
}
