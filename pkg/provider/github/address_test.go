// SPDX-License-Identifier: Apache-2.0

package github

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/forge"
)

func TestParseAddress(t *testing.T) {
	const public, enterprise = "https://github.com", "https://ghe.example.com:8443"
	tests := map[string]struct {
		web, text string
		want      address
	}{
		"blob": {
			public, "https://github.com/acme/app/blob/main/a/b.yaml", address{"acme", "app", "main", "a/b.yaml"},
		},
		"another spelling of host": {
			public, "https://GitHub.com:443/acme/app/blob/main/b.yaml", address{"acme", "app", "main", "b.yaml"},
		},
		"raw": {
			public, "https://github.com/acme/app/raw/v1.2/b.yaml", address{"acme", "app", "v1.2", "b.yaml"},
		},
		"a branch with a slash": {
			public, "https://github.com/acme/app/blob/a%2Fb/c%20d.yaml", address{"acme", "app", "a/b", "c d.yaml"},
		},
		"a full ref": {
			public, "https://github.com/acme/app/raw/refs/heads/main/b.yaml", address{"acme", "app", "main", "b.yaml"},
		},
		"a query is no part of it": {
			public, "https://github.com/acme/app/blob/main/b.yaml?raw=true#L1", address{"acme", "app", "main", "b.yaml"},
		},
		"the raw host of a server": {
			enterprise, "https://raw.ghe.example.com:8443/acme/app/main/b.yaml", address{"acme", "app", "main", "b.yaml"},
		},
		"the public raw host":         {public, "https://raw.githubusercontent.com/acme/app/main/b.yaml", address{}},
		"another host":                {public, "https://github.com.evil.example/acme/app/blob/main/b.yaml", address{}},
		"the public host on a server": {enterprise, "https://github.com/acme/app/blob/main/b.yaml", address{}},
		"another port":                {public, "https://github.com:8443/acme/app/blob/main/b.yaml", address{}},
		"another scheme":              {public, "http://github.com/acme/app/blob/main/b.yaml", address{}},
		"a user":                      {public, "https://x@github.com/acme/app/blob/main/b.yaml", address{}},
		"a directory":                 {public, "https://github.com/acme/app/tree/main/b", address{}},
		"no path":                     {public, "https://github.com/acme/app/blob/main", address{}},
		"dots":                        {public, "https://github.com/acme/app/blob/main/a/%2e%2e/b.yaml", address{}},
		"an owner that is none":       {public, "https://github.com/ac%2Fme/app/blob/main/b.yaml", address{}},
		"an empty segment":            {public, "https://github.com/acme/app/blob//b.yaml", address{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := parseAddress(test.web, test.text)
			if ok != (test.want != address{}) || (ok && got != test.want) {
				t.Errorf("%+v, %t, want %+v", got, ok, test.want)
			}
		})
	}
}

// Only the event's own token is used: it reads its repository and public ones.
func TestFileAtUsesTokenOfEvent(t *testing.T) {
	const path = "/blob/main/task.yaml"
	tests := []struct {
		name, repo string
		private    bool
		install    bool // the App on all repositories of the account, or on the event's alone
		found      bool
	}{
		{"another private repository of the account, which a writer of this one may not read", "acme/tasks", true, true,
			false},
		{"a public one that it does not hold", "acme/tasks", false, false, true},
		{"a public one of another account", "stranger/tasks", false, true, true},
		{"a private one of another account where the App is installed too", "stranger/tasks", true, true, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := forge.New(forge.Options{})
			if err := g.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = g.Close() })
			g.CreateApp(testApp, "plumbline", appKey(), testSecret)
			own := g.CreateRepo("acme", "app", forge.RepoOptions{Private: true})
			owner, name, _ := strings.Cut(test.repo, "/")
			other := g.CreateRepo(owner, name, forge.RepoOptions{Private: test.private})
			g.Commit(test.repo, "main", forge.Change{Message: "x", Files: map[string]string{"task.yaml": "content"}})
			var held []string
			if !test.install {
				held = []string{"acme/app"}
			}
			id := g.Install(testApp, "acme", held...)
			if owner != "acme" {
				g.Install(testApp, owner)
			}
			w := envOf(g, own, id)
			client, err := New(Options{}).Connect(t.Context(), w.BaseURL, w.Project, w.Credentials)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				got, err := client.FileAt(t.Context(), other.HTMLURL+path)
				if test.found != (string(got) == "content" && err == nil) || (!test.found && !fault.Is(err, fault.Ignored)) {
					t.Errorf("%q, %v, want it found: %t", got, err, test.found)
				}
			}
			if got := g.Count(forge.RouteToken); got != 1 {
				t.Errorf("%d tokens were asked for, want the event's own only", got)
			}
		})
	}
}

func TestDefaultBranchReadsRenamedBranch(t *testing.T) {
	b := newBench(t)
	b.Commit("main", map[string]string{"x": "1"})
	for action, class := range map[int]fault.Class{404: fault.Transient, 409: fault.Transient, 500: fault.Transient,
		403: fault.Operator} {
		b.Inject(forge.Fault{Route: forge.RouteRef, Count: 1, Do: forge.Answer(action, nil, `{"message":"x"}`)})
		if got, err := b.client.DefaultBranch(t.Context()); got != "" || !fault.Is(err, class) {
			t.Errorf("%d: %q, %v, want %s", action, got, err, class)
		}
	}
	b.Inject(forge.Fault{Route: forge.RouteRef, Count: 1, Do: forge.Answer(200, nil, `{"object":{"sha":"main"}}`)})
	if got, err := b.client.DefaultBranch(t.Context()); got != "" || !fault.Is(err, fault.Transient) {
		t.Errorf("no commit: %q, %v", got, err)
	}
}
