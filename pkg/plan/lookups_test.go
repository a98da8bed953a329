// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// Which users may start runs by the settings, and what is read for that: each thing once, and only
// what the decision depends on.
func TestSettingsDecideWhoMayRun(t *testing.T) {
	t.Parallel()
	const runs, pends = v1alpha1.DispositionRuns, v1alpha1.DispositionPending
	policy := func(teams ...string) *pacv1alpha1.Settings {
		return &pacv1alpha1.Settings{Policy: &pacv1alpha1.Policy{PullRequest: teams}}
	}
	trusts := func(names ...string) *pacv1alpha1.Settings { return &pacv1alpha1.Settings{Trusted: names} }
	here := func(in *plan.Input) { in.Event.Spec.PullRequest.HeadProjectID = in.Event.Spec.Project.ID }
	by := func(actor string) func(*plan.Input) {
		return func(in *plan.Input) { in.Event.Spec.Actor = actor }
	}
	members := func(in *plan.Input) { in.Config.MembersMayRun = true }
	unserved := func(in *plan.Input) {
		in.Repository.Spec.GitProvider = &pacv1alpha1.GitProvider{Type: "gitea"}
	}
	for name, c := range map[string]struct {
		settings *pacv1alpha1.Settings
		change   []func(*plan.Input)
		env      env
		want     v1alpha1.Disposition
		says     string
		asked    string
	}{
		"listed": {policy("a", " ", "b"), nil, env{teams: map[string]string{"a": "x", "b": "author"}}, runs, "",
			"a with author, b with author"},
		"a writer who is not listed, in the repository itself": {policy("a"), []func(*plan.Input){here},
			env{writers: "author", teams: map[string]string{"a": "x"}}, pends, "is in no team",
			"a with author, ownership of author"},
		"listed, but not the actor": {policy("a"), []func(*plan.Input){by("writer")},
			env{writers: "writer", teams: map[string]string{"a": "author"}}, pends, "but the user who changed it may not",
			"a with author, a with writer, ownership of writer"},
		"a team that is not there": {policy("a", "gone"), nil, env{teams: map[string]string{"a": "x"}}, pends,
			"is in no team that the Repository's settings.policy lists, and not in OWNERS. there is no team gone.",
			"a with author, gone with author, ownership of author"},
		"a team that is not there beside one that is": {policy("gone", "a"), nil,
			env{teams: map[string]string{"a": "author"}}, runs, "", "gone with author, a with author, gone with author"},
		"in OWNERS where there is a policy": {policy("a"), nil,
			env{owners: "author", teams: map[string]string{"a": ""}}, runs, "", "a with author, ownership of author"},
		"nobody listed": {
			policy(""), nil, env{owners: "author", writers: "author"}, pends, "names no team for pull requests", "",
		},
		"no list": {policy(), []func(*plan.Input){here},
			env{owners: "author", writers: "author"}, pends, "names no team for pull requests", ""},
		"a service without teams": {
			policy("a"), []func(*plan.Input){here, unserved}, env{}, pends, "cannot evaluate", "",
		},
		"in OWNERS": {
			nil, nil, env{owners: "author"}, runs, "", "access of author, ownership of author",
		},
		"in OWNERS, but not the actor": {nil, []func(*plan.Input){by("x")}, env{owners: "author"}, pends,
			"but the user who changed it may not", "access of author, ownership of author, access of x, ownership of x"},
		"a member": {
			nil, []func(*plan.Input){members}, env{members: "author"}, runs, "", "access of author, membership of author",
		},
		"a member where writers run alone": {
			nil, nil, env{members: "author"}, pends, "no write access", "access of author, ownership of author",
		},
		"trusted": {trusts("renovate[bot]", "Author"), nil, env{}, runs, "", ""},
		"another is trusted": {
			trusts("renovate[bot]"), nil, env{}, pends, "no write access", "access of author, ownership of author",
		},
		"an untrusted user pushed to what is trusted": {trusts("author"), []func(*plan.Input){by("x")}, env{}, pends,
			"but the user who changed it may not", "access of x, ownership of x"},
		"a trusted account pushed to an untrusted user's": {
			trusts("bot"), []func(*plan.Input){by("bot")}, env{}, pends, "The author", "access of author, ownership of author",
		},
		"a trusted account pushed to a writer's": {
			trusts("bot"), []func(*plan.Input){by("bot")}, env{writers: "author"}, pends, "but the user who changed it may not",
			"access of author, access of bot, ownership of bot",
		},
		"who is trusted acted as the service says": {
			trusts("author"), nil, env{actor: ptr("author")}, runs, "", "who acted",
		},
		"who is trusted has not acted": {trusts("author"), nil, env{actor: ptr("x")}, pends,
			"but the user who changed it may not", "who acted, access of x, ownership of x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, w := forked(), &c.env
			in.Repository.Spec.Settings = c.settings
			for _, change := range c.change {
				change(&in)
			}
			w.files = []git.File{pipeline("a", `on-cel-expression: 'event_type != ""'`)}
			made := w.make(t, in)
			if made.Disposition != c.want || !strings.Contains(made.Message, c.says) ||
				(len(created(made)) == 1) != (c.want == runs) {
				t.Errorf("%s because %q, want %s because %q", made.Disposition, made.Message, c.want, c.says)
			}
			// of approvals, which other tests ask for
			w.asked = slices.DeleteFunc(w.asked, func(q string) bool { return q == "records" })
			asked, _, _ := strings.Cut(strings.Join(w.asked, ", "), "head")
			if diff := cmp.Diff(c.asked, strings.Trim(asked, ", ")); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

func ptr(s string) *string { return &s }

// S12: a failed look-up is not an answer.
func TestFailedLookUpIsRetried(t *testing.T) {
	t.Parallel()
	in := forked()
	in.Config.MembersMayRun = true
	policed := forked()
	policed.Repository.Spec.Settings = &pacv1alpha1.Settings{Policy: &pacv1alpha1.Policy{PullRequest: []string{"a"}}}
	for _, fails := range []string{"access of", "membership of", "ownership of", "a with", "then ownership of"} {
		in := in
		if fails == "a with" || fails == "then ownership of" {
			in = policed
		}
		w := &env{teams: map[string]string{"a": ""}, fails: strings.TrimPrefix(fails, "then ")}
		made, err := plan.Make(t.Context(), in, w.sources())
		if err == nil || made.Disposition != "" || len(made.Runs) != 0 || !strings.Contains(err.Error(), "author") {
			t.Errorf("%s: error %v, plan %+v: want an error that says what was asked", fails, err, made)
		}
	}
}
