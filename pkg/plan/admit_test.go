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
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// S10: who may start a pull request's event, and which accounts are looked up, each once.
func TestAuthorAndActorNeedWriteAccess(t *testing.T) {
	t.Parallel()
	const runs, pends, ignored = v1alpha1.DispositionRuns, v1alpha1.DispositionPending, v1alpha1.DispositionIgnored
	by := func(actor string, change ...func(*v1alpha1.GitEventSpec)) plan.Input {
		in := forked()
		in.Event.Spec.Actor = actor
		for _, c := range change {
			c(in.Event.Spec)
		}
		return in
	}
	here := func(s *v1alpha1.GitEventSpec) { s.PullRequest.HeadProjectID = s.Project.ID }
	deleted := func(s *v1alpha1.GitEventSpec) { s.PullRequest.HeadProjectID = 0 } // its fork
	label := func(s *v1alpha1.GitEventSpec) { s.EventType = match.LabelEvent }
	ofApp := func(s *v1alpha1.GitEventSpec) { s.PullRequest.Author = "renovate[bot]" }
	copilot := func(s *v1alpha1.GitEventSpec) { s.PullRequest.Author, s.PullRequest.App = "Copilot", true }
	for name, c := range map[string]struct {
		in      plan.Input
		writers string
		payload string
		want    v1alpha1.Disposition
		asked   []string
	}{
		"its author acted": {
			by("author"), "author", "", runs, []string{"access of author"},
		},
		"another writer acted": {
			by("member"), "author member", "", runs, []string{"access of author", "access of member"},
		},
		"an untrusted user pushed to a writer's fork": {
			by("stranger"), "author", "", pends, []string{"access of author", "access of stranger", "ownership of stranger"},
		},
		"an untrusted user pushed to a deleted fork": {by("stranger", deleted), "author", "", pends,
			[]string{"access of author", "access of stranger", "ownership of stranger"}},
		"a writer pushed to an untrusted user's": {
			by("member"), "member", "", pends, []string{"access of author", "ownership of author"},
		},
		"an untrusted user acted in the repository itself": {
			by("stranger", here), "author", "", runs, []string{"access of author"},
		},
		"a reader's own in the repository itself": {
			by("author", here), "member", "", pends, []string{"access of author", "ownership of author"},
		},
		"an App's own in the repository itself": {by("renovate[bot]", here, ofApp), "", "", runs, nil},
		"a person's act on an App's own":        {by("stranger", here, ofApp), "", "", runs, nil},
		"an App's whose login does not tell":    {by("Copilot", here, copilot), "", "", runs, nil},
		"an App's from a fork": {
			by("renovate[bot]", ofApp), "", "", pends, []string{"access of renovate[bot]", "ownership of renovate[bot]"},
		},
		"an untrusted user's label in the repository itself": {
			by("stranger", here, label), "author", "", ignored, []string{"access of stranger", "ownership of stranger"},
		},
		"a writer's label in the repository itself": {
			by("member", here, label), "author member", "", runs, []string{"access of member", "access of author"},
		},
		"a writer's label on a reader's own": {by("member", here, label), "member", "", ignored,
			[]string{"access of member", "access of author", "ownership of author"}},
		"an untrusted user's label on a writer's fork": {
			by("stranger", label), "author", "", ignored, []string{"access of stranger", "ownership of stranger"},
		},
		"a writer's label on a writer's fork": {
			by("member", label), "author member", "", runs, []string{"access of member", "access of author"},
		},
		"a writer's label on an untrusted user's fork": {
			by("member", label), "member", "", ignored, []string{"access of member", "access of author", "ownership of author"},
		},
		"a version before recorded it, a writer acted": {
			by(""), "author member", "member", runs, []string{"access of author", "actor", "access of member"},
		},
		"a version before recorded it, an untrusted user did": {by(""), "author", "stranger", pends,
			[]string{"access of author", "actor", "access of stranger", "ownership of stranger"}},
		"the user who acted is unknown": {
			by(""), "author", "", pends, []string{"access of author", "actor"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &env{
				files: []git.File{pipeline("a", `on-cel-expression: 'event_type != ""'`)}, writers: c.writers, acted: c.payload,
			}
			made := w.make(t, c.in)
			if made.Disposition != c.want || (len(created(made)) == 1) != (c.want == runs) {
				t.Errorf("%+v, want %s", made, c.want)
			}
			var asked []string
			if at := slices.Index(w.asked, "head"); at >= 0 {
				asked = w.asked[:at]
			} else {
				asked = w.asked
			}
			// of approvals, which other tests ask for
			asked = slices.DeleteFunc(slices.Clone(asked), func(q string) bool { return q == "records" })
			if diff := cmp.Diff(c.asked, slices.Clip(asked)); diff != "" && len(c.asked)+len(asked) > 0 {
				t.Errorf("asked: %s", diff)
			}
		})
	}
}

// S11: where deliveries are not signed, the Git service itself names the actor. An actor who is
// untrusted according to the delivery stays untrusted.
func TestActorIsReadFromService(t *testing.T) {
	t.Parallel()
	const runs, pends, ignored = v1alpha1.DispositionRuns, v1alpha1.DispositionPending, v1alpha1.DispositionIgnored
	for name, c := range map[string]struct {
		told, said string
		label      bool
		want       v1alpha1.Disposition
		asked      []string
	}{
		"the same": {"author", "Author", false, runs, []string{"access of author", "who acted"}},
		"another writer": {
			"author", "member", false, runs, []string{"access of author", "who acted", "access of member"},
		},
		"an untrusted user": {"member", "stranger", false, pends,
			[]string{"access of author", "access of member", "who acted", "access of stranger", "ownership of stranger"}},
		"nobody": {"author", "", false, pends, []string{"access of author", "who acted"}},
		"an untrusted user by the delivery": {
			"stranger", "author", false, pends, []string{"access of author", "access of stranger", "ownership of stranger"},
		},
		"another's label": {"member", "stranger", true, ignored,
			[]string{"access of member", "who acted", "access of stranger", "ownership of stranger"}},
		"nobody's label": {"member", "", true, ignored, []string{"access of member", "who acted"}},
		"a writer's label": {
			"member", "member", true, runs, []string{"access of member", "who acted", "access of author"},
		},
		"an untrusted user's by the delivery": {
			"stranger", "member", true, ignored, []string{"access of stranger", "ownership of stranger"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &env{
				files: []git.File{pipeline("a", `on-cel-expression: 'event_type != ""'`)}, writers: "author member", actor: &c.said,
			}
			in := forked()
			in.Event.Spec.Actor = c.told
			if c.label {
				in.Event.Spec.EventType = match.LabelEvent
			}
			made := w.make(t, in)
			if made.Disposition != c.want || (len(created(made)) == 1) != (c.want == runs) {
				t.Errorf("%+v, want %s", made, c.want)
			}
			if c.said == "" && !strings.Contains(made.Message, " does not ") {
				t.Errorf("the reason is %q", made.Message)
			}
			w.asked = slices.DeleteFunc(w.asked, func(q string) bool { return q == "records" })
			if diff := cmp.Diff(c.asked, w.asked[:len(c.asked)]); diff != "" || c.want != runs && len(w.asked) != len(c.asked) {
				t.Errorf("asked %v: %s", w.asked, diff)
			}
		})
	}
	w := &env{writers: "author", actor: new(string), actorErr: down()}
	in := forked()
	in.Event.Spec.Actor = "author"
	if made, err := plan.Make(t.Context(), in, w.sources()); err == nil || made.Disposition != "" || len(made.Runs) != 0 {
		t.Errorf("error %v, plan %+v: want an error", err, made)
	}
}

// S12: an unknown actor is retried.
func TestUnknownActorIsRetried(t *testing.T) {
	t.Parallel()
	in := forked()
	in.Event.Spec.Actor = ""
	made, err := plan.Make(t.Context(), in, (&env{writers: "author", payloadErr: down()}).sources())
	if err == nil || made.Disposition != "" || len(made.Runs) != 0 {
		t.Errorf("error %v, plan %+v: want an error", err, made)
	}
}

// The message of an event that waits for approval says who can approve it, by the Repository's
// settings.
func TestPendingMessageNamesApprovers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*plan.Input)
		want   string
	}{
		"by default": {func(*plan.Input) {}, "has write access to the repository or is in the OWNERS"},
		"members":    {func(in *plan.Input) { in.Config.MembersMayRun = true }, "is a member of the organization"},
		"a policy": {func(in *plan.Input) {
			in.Repository.Spec.Settings = &pacv1alpha1.Settings{
				Policy: &pacv1alpha1.Policy{PullRequest: []string{"devs"}, OkToTest: []string{"leads"}},
			}
		}, "is in the team leads or is in the OWNERS"},
	} {
		in := forked()
		c.change(&in)
		made := (&env{files: []git.File{pulled("a")}, teams: map[string]string{"devs": "", "leads": ""}}).make(t, in)
		writes := strings.Contains(made.Message, "other than its author who has write access")
		if made.Disposition != v1alpha1.DispositionPending || !strings.Contains(made.Message, c.want) ||
			writes == (name == "a policy") {
			t.Errorf("%s: %s %q, want %q", name, made.Disposition, made.Message, c.want)
		}
	}
}
