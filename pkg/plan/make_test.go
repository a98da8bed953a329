// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

func down() error { return fault.Transientf("GitUnavailable", "502") }

func TestPushStartsMatchingPipelines(t *testing.T) {
	t.Parallel()
	w := &env{files: []git.File{pipeline("docs", "on-label: bug"), pipeline("hello")}}
	in := push()
	before := in.Event.Spec.DeepCopy()
	made := w.make(t, in)
	if made.Disposition != v1alpha1.DispositionRuns || made.Reason != "Selected" ||
		made.Message != "1 of 2 pipelines in .tekton are for this event" || made.Wait != nil {
		t.Errorf("%s, %s: %s, waits for %v", made.Disposition, made.Reason, made.Message, made.Wait)
	}
	if made.HeadSHA != sha || made.DefinitionSHA != sha {
		t.Errorf("planned at %s and %s", made.HeadSHA, made.DefinitionSHA)
	}
	if diff := cmp.Diff([]string{"hello"}, created(made)); diff != "" {
		t.Fatal(diff)
	}
	run := made.Runs[0]
	if want := resources.RunName("push-1", ".tekton/hello.yaml", 0, "hello"); run.Name != want ||
		run.Namespace != "team" || run.Secret != resources.SecretName(want) {
		t.Errorf("%+v, want it to be called %s", run, want)
	}
	if made := decoded(t, run); made.Name != run.Name || made.Namespace != run.Namespace ||
		made.Annotations[pipelinesascode.SHATitle] != "a change" {
		t.Errorf("%+v", made.ObjectMeta)
	}
	if diff := cmp.Diff([]string{"head", "files " + sha + " .tekton", "pulls"}, w.asked); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, in.Event.Spec); diff != "" {
		t.Errorf("the input was changed: %s", diff)
	}
	if diff := cmp.Diff(made, w.make(t, in)); diff != "" {
		t.Errorf("the same answers made another plan: %s", diff)
	}
}

func TestEventsThatStartNothing(t *testing.T) {
	t.Parallel()
	label := func(in plan.Input) plan.Input { in.Event.Spec.EventType = match.LabelEvent; return in }
	for name, c := range map[string]struct {
		in          plan.Input
		env         env
		disposition v1alpha1.Disposition
		reason      string
		runs        int
	}{
		"there is no pipeline": {push(), env{}, v1alpha1.DispositionIgnored, "NoPipelines", 0},
		"no pipeline is for it": {
			push(), env{files: []git.File{pipeline("a", "on-label: bug")}}, v1alpha1.DispositionIgnored, "NoMatch", 0,
		},
		"its commit asks for no CI": {
			push(), env{files: []git.File{pipeline("a")}, skipCI: true}, v1alpha1.DispositionSkipped, "SkipCI", 0,
		},
		"nobody who may has started it": {
			forked(), env{files: []git.File{pipeline("a")}}, v1alpha1.DispositionPending, "PendingApproval", 0,
		},
		"a label, which asks for no approval": {
			label(forked()), env{files: []git.File{pipeline("a")}}, v1alpha1.DispositionIgnored, "NotApproved", 0,
		},
		"its directory holds more than we read": {
			push(), env{files: many(1001, "on-label: bug")}, v1alpha1.DispositionRuns, "TooManyPipelines", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := c.env.make(t, c.in)
			if made.Disposition != c.disposition || made.Reason != c.reason || made.HeadSHA != sha || made.Message == "" ||
				len(made.Runs) != c.runs || len(created(made)) != 0 {
				t.Errorf("%+v, want %s because of %s", made, c.disposition, c.reason)
			}
		})
	}
}

// An error decides nothing.
func TestMakeReturnsErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in  plan.Input
		env env
	}{
		"the head":                {push(), env{headErr: down()}},
		"who may":                 {forked(), env{accessErr: down()}},
		"the comment's pull":      {commented(), env{completeErr: down(), writers: "member author"}},
		"what the comment says":   {commented(), env{payloadErr: down(), writers: "member author"}},
		"a param that is no rule": {with(push(), pacv1alpha1.Params{Name: "stage", Filter: "pac.x =="}), env{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.env.files = []git.File{pipeline("a")}
			made, err := plan.Make(t.Context(), c.in, c.env.sources())
			if err == nil || made == nil || made.Spec == nil || made.Disposition != "" || len(made.Runs) != 0 {
				t.Errorf("error %v, plan %+v: want an error and the event's spec", err, made)
			}
		})
	}
}

// with gives the Repository custom params.
func with(in plan.Input, params ...pacv1alpha1.Params) plan.Input {
	in.Repository.Spec.Params = &params
	return in
}

func TestDefinitionsFromDefaultBranch(t *testing.T) {
	t.Parallel()
	w := &env{files: []git.File{pipeline("a", "on-path-change: '**'", "task: tasks/own.yaml")},
		tree: map[string]string{"tasks/own.yaml": task}, changedErr: down()}
	in := push()
	in.Repository.Spec.Settings = &pacv1alpha1.Settings{PipelineRunProvenance: "default_branch"}
	made := w.make(t, in)
	if made.HeadSHA != sha || made.DefinitionSHA != defaultSHA || made.Wait == nil {
		t.Fatalf("%+v, want definitions of the default branch and a wait", made)
	}
	w.changedErr, w.changed = nil, git.Changes{Added: []string{"a"}}
	made = w.make(t, again(in, made))
	if diff := cmp.Diff([]string{"a"}, created(made)); diff != "" || w.count("default branch") != 1 ||
		w.count("file "+defaultSHA+" tasks/own.yaml") != 1 {
		t.Errorf("asked %v: want the default branch asked for once: %s", w.asked, diff)
	}
}

// commented is a comment of member on author's pull request.
func commented() plan.Input {
	in := forked()
	in.Event.Spec.EventType, in.Event.Spec.Sender, in.Event.Spec.SHA = match.CommentEvent, "member", ""
	in.Event.Spec.Comment, in.Event.Spec.HappenedAt, in.Event.Spec.ReceivedAt = &v1alpha1.Comment{ID: 9}, second(5),
		*second(6)
	return in
}

func TestCommentKeepsHeadOfFirstAttempt(t *testing.T) {
	t.Parallel()
	w := &env{
		files: []git.File{pipeline("now", "on-comment: ^/deploy"),
			pipeline("later", "on-comment: ^/deploy", "task: "+address), pipeline("other")},
		writers: "member author", said: "/deploy", moved: sha, skipCI: true, addressErr: down(),
	}
	made := w.make(t, commented())
	if made.HeadSHA != sha || made.Spec.SHA != sha || made.Spec.Comment.Body != "/deploy" || made.Spec.HeadRef != "topic" {
		t.Errorf("%+v, spec %+v", made, made.Spec)
	}
	if diff := cmp.Diff([]string{"now"}, created(made)); diff != "" || len(made.Runs) != 2 || !made.Runs[1].Unresolved ||
		made.Runs[1].Wait == nil || made.Wait == nil {
		t.Fatalf("%+v: want now's run, and later's to wait: %s", made.Runs, diff)
	}
	w.addressErr, w.tree, w.moved, w.asked = nil, map[string]string{address: task}, defaultSHA, nil
	made = w.make(t, again(commented(), made))
	if diff := cmp.Diff([]string{"later"}, created(made)); diff != "" || len(made.Runs) != 2 || made.Wait != nil ||
		made.HeadSHA != sha || made.Spec.SHA != sha {
		t.Errorf("%+v: want later's run at the same commit: %s", made, diff)
	}
	if w.count("access") != 0 {
		t.Errorf("asked %v: who may was answered before", w.asked)
	}
}

func TestDeniedCommentLeavesNoCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env    env
		reason string
		head   string // not requested because of an untrusted user's comment
	}{
		"an untrusted user's":                 {env{writers: "author"}, "NotApproved", ""},
		"on an untrusted user's pull request": {env{writers: "member"}, "NotApproved", sha},
		"a directory that is unreadable":      {env{writers: "member author", files: many(1001)}, "TooManyPipelines", sha},
		"a file that is unreadable": {
			env{writers: "member author", files: []git.File{{Path: ".tekton/a.yaml", Data: []byte("a: [")}}}, "NoMatch", sha,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.env.moved = sha
			made := c.env.make(t, commented())
			if made.Disposition != v1alpha1.DispositionIgnored || made.Reason != c.reason || made.HeadSHA != c.head ||
				len(made.Runs) != 0 {
				t.Errorf("%+v, want it ignored because of %s", made, c.reason)
			}
		})
	}
}

// Only the Git service may end an event this way: an Ignored fault of anything else is a defect.
func TestCommentOnClosedPullRequestIsIgnored(t *testing.T) {
	t.Parallel()
	closed := fault.Ignoredf("PullRequestClosed", "it is closed")
	_, err := plan.Make(t.Context(), commented(), (&env{writers: "member", completeErr: closed}).sources())
	var over *plan.IgnoredError
	if !errors.As(err, &over) || over.Why.Reason != "PullRequestClosed" || !fault.Is(err, fault.Ignored) ||
		err.Error() != "it is closed" {
		t.Errorf("error %v, want it over", err)
	}
	if _, err = plan.Make(t.Context(), push(), (&env{headErr: closed}).sources()); err == nil || errors.As(err, &over) {
		t.Errorf("error %v, want one that is not the end", err)
	}
}

// If two pipelines wait, the known time of one is stored next to the backoff of the other.
func TestWaitKeepsEachPipelinesTime(t *testing.T) {
	t.Parallel()
	const limit = time.Minute
	w := &env{
		files: []git.File{
			pipeline("files", "on-path-change: '**'"), pipeline("body", `on-cel-expression: 'body.a == 1'`), pipeline("plain"),
		},
		payload: "{}", changedErr: fault.Throttledf("Limited", limit, "later"), payloadErr: fault.Transientf("Down", "down"),
	}
	made := w.make(t, push())
	after, known := backoff.KnownWait(backoff.Requeue(made.Wait))
	if !known || after != limit || made.Wait.Error() != "reading the payload: down" {
		t.Errorf("waits %v for %v, want the words of the one that fails and the time of the other", after, made.Wait)
	}
	if diff := cmp.Diff([]string{"plain"}, created(made)); diff != "" {
		t.Error(diff)
	}
}

func TestSecretsAreOnlyMarkers(t *testing.T) {
	t.Parallel()
	const secret = `cor"rect horse`
	ref := template.SecretRef{Name: "passwords", Key: "one"}
	in := with(push(), pacv1alpha1.Params{Name: "password", SecretRef: &pacv1alpha1.Secret{Name: ref.Name, Key: ref.Key}})
	uses := edited(pipeline("uses"), "spec:\n  p", "spec:\n  params: [{name: p, value: '{{ password }}'}]\n  p")
	tells := pipeline("tells", `on-cel-expression: 'password == "x"'`)
	w := &env{files: []git.File{uses, tells}, secrets: map[template.SecretRef]string{ref: secret}}
	made := w.make(t, in)
	marker := decoded(t, made.Runs[0]).Spec.Params[0].Value.StringVal
	if made.Secrets[marker] != secret || w.count("secret") != 1 {
		t.Errorf("the marker is %q, secrets %v, asked %v", marker, made.Secrets, w.asked)
	}
	for pipeline, reason := range reasons(made) {
		if strings.Contains(reason, "horse") {
			t.Errorf("%s: %s", pipeline, reason)
		}
	}
	w.secrets = nil
	if made = w.make(t, in); made.Wait == nil || !made.Runs[0].Unresolved ||
		fault.Of(made.Runs[0].Wait).Reason != fault.ReasonSecretMissing {
		t.Errorf("%+v, want a wait for the secret", made)
	}
}
