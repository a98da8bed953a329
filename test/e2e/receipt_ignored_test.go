// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// ignorable is a delivery that starts nothing, with the counted reason and words of the answer.
type ignorable struct {
	what, reason, says string
	delivery           delivery
}

// A12: a delivery that can have no effect is answered 2xx with the reason, counted with the
// reason, and not stored. A GitLab disables a hook after any other answer.
func TestIrrelevantDeliveriesAreIgnored(t *testing.T) {
	forBothServices(t, setup{receivers: 1, controllers: 1}, ignoresIrrelevant)
}

func ignoresIrrelevant(t *testing.T, env *environment) {
	receiver := env.receivers[0]
	number, _ := env.openForkPull("stranger")
	env.git.commit("gone", forge.Change{Files: map[string]string{"x": "y"}})
	env.git.remove("gone")
	cases := []ignorable{{"a branch that is deleted", "Deleted", "refs/heads/gone", env.git.pushed("refs/heads/gone")}}
	switch g := env.git.(type) {
	case *onGitHub:
		cases = append(cases, g.ignorable(number)...)
	case *onGitLab:
		cases = append(cases, g.ignorable(number)...)
	}
	for _, c := range cases {
		before := env.countDeliveries(receiver, "ignored", c.reason)
		status, answer := env.post(receiver, c.delivery)
		if status/100 != 2 || !strings.Contains(answer, c.says) {
			t.Errorf("%s: answered %d %s, want 2xx and a reason with %q", c.what, status, answer, c.says)
		}
		if after := env.countDeliveries(receiver, "ignored", c.reason); after != before+1 {
			t.Errorf("%s: the metric of %s went from %d to %d, want one more", c.what, c.reason, before, after)
		}
	}
	env.requireNothingStored("after ignorable events")
	env.requireNoSideEffects("after ignorable events")
}

func (g *onGitHub) ignorable(number int) []ignorable {
	return []ignorable{
		{"a ping", "UnsupportedEvent", "ping", g.PingDelivery(g.app.ID)},
		{"a pull request that is edited", "UnsupportedAction", "edited", g.pulled(number, "edited")},
		{"a repository that nobody claims", "NoRepository", "acme/other", g.unclaimedRepository()},
	}
}

// unclaimedRepository returns a delivery of a new repository that the App is installed on and that
// no Repository claims.
func (g *onGitHub) unclaimedRepository() forge.Delivery {
	const name = "acme/other"
	if g.installed == 0 {
		g.CreateRepo("acme", "other", forge.RepoOptions{})
		g.installed = g.Install(g.app.ID, "acme", name)
		g.Commit(name, "main", forge.Change{Files: map[string]string{".tekton/push.yaml": pipeline("hello", "push")}})
	}
	return g.PushDelivery(forge.PushEvent{Repo: name, Ref: "refs/heads/main"})
}

func (g *onGitLab) ignorable(number int) []ignorable {
	const other = "acme/other"
	g.CreateProject(other, gitlab.ProjectOptions{})
	hook := g.AddHook(other, noURL, hookSecret)
	g.Commit(other, "main", forge.Change{Files: map[string]string{".tekton/push.yaml": pipeline("hello", "push")}})
	g.RetitleMergeRequest(projectName, int64(number), somebody, "Another title")
	retitled := g.MergeRequestDelivery(gitlab.MergeRequestEvent{Project: projectName, IID: int64(number)})
	project := map[string]any{"id": g.repo.ID, "path_with_namespace": projectName, "web_url": g.repo.WebURL}
	body := map[string]any{"object_kind": "pipeline", "project": project, "object_attributes": map[string]any{"id": 1}}
	return []ignorable{
		{"an event that starts nothing", "UnsupportedEvent", "Pipeline Hook", g.EventDelivery(g.hook, "Pipeline Hook", body)},
		{"a merge request that is renamed", "UnsupportedAction", "update", retitled},
		{"a project that nobody claims", "NoRepository", other,
			g.PushDelivery(gitlab.PushEvent{Project: other, Ref: "refs/heads/main", HookID: hook})},
	}
}
