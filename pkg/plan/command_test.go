// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

const pulls = "[pull_request]"

// pulled is a pipeline for pull requests to main.
func pulled(name string, annotations ...string) git.File {
	return edited(pipeline(name, annotations...), "[push]", pulls)
}

// manual is a pipeline that no event starts.
func manual(name string) git.File {
	return edited(pipeline(name), `    pipelinesascode.tekton.dev/on-event: "[push]"`+"\n", "",
		`    pipelinesascode.tekton.dev/on-target-branch: "[main]"`+"\n", "", "  annotations:\n", "")
}

// several are pipelines of every kind.
func several() []git.File {
	return []git.File{
		pulled("build"), pulled("lint"), pipeline("pushed"), pipeline("deploy", "on-comment: ^/test"), manual("manual"),
		pulled("labelled", "on-label: bug"),
		pulled("expressed", `on-cel-expression: event_type == "test-all-comment"`),
		pulled("elsewhere", "target-namespace: other"),
		edited(pulled("generated"), "name: generated\n", "generateName: generated-\n"),
	}
}

// written is an env with a comment by a member, who has write access.
func written(comment string) *env {
	return &env{files: several(), writers: "member author", said: comment, moved: sha, skipCI: true}
}

func TestCommandStartsNamedPipelines(t *testing.T) {
	t.Parallel()
	for comment, want := range map[string]struct {
		kind    string
		created []string
	}{
		"/test":                             {"test-all-comment", []string{"build", "lint", "expressed", "generated-"}},
		"please\n\n/test build":             {"test-comment", []string{"build"}},
		"/test lint build\n/test lint":      {"test-comment", []string{"build", "lint"}},
		"/test pushed manual labelled":      {"test-comment", []string{"pushed", "manual", "labelled"}},
		"/test expressed":                   {"test-comment", []string{"expressed"}},
		"/test generated":                   {"test-comment", []string{"generated-"}},
		"/test generated-":                  {"test-comment", []string{"generated-"}},
		"/test elsewhere":                   {"test-comment", nil},
		"/test build\n> /cancel":            {"test-comment", []string{"build"}},
		"```\n/cancel\n```\n\n/test\nbuild": {"test-all-comment", []string{"build", "lint", "expressed", "generated-"}},
	} {
		made := written(comment).make(t, commented())
		if diff := cmp.Diff(want.created, created(made)); diff != "" || made.Spec.EventType != want.kind ||
			made.HeadSHA != sha {
			t.Errorf("%q: %s: %s", comment, made.Spec.EventType, diff)
		}
		for i, run := range made.Runs {
			if label := decoded(t, run).Labels["pipelinesascode.tekton.dev/event-type"]; i == 0 && label != want.kind {
				t.Errorf("%q: the label is %q", comment, label)
			}
		}
	}
}

func TestInvalidCommandStartsNothing(t *testing.T) {
	t.Parallel()
	params := []pacv1alpha1.Params{
		{Name: "version"}, {Name: "secret", SecretRef: &pacv1alpha1.Secret{Name: "s", Key: "k"}}, {Name: "revision"},
	}
	for comment, want := range map[string]struct{ reason, says string }{
		"/test biuld":       {"UnknownName", "no pipeline is called biuld. Did you mean build? (All: build, deploy, elsewhere, expressed, generated-, labelled, lint, manual, pushed)"},
		"/test build biuld": {"UnknownName", "nothing was started"},
		"/test " + strings.Repeat("b ", 9) + strings.Repeat("y", 300) + many500(): {"UnknownName",
			"…, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15, x16, x17, x18 and 482 more. (All: "},
		"/test\n/cancel": {"ContradictoryCommands", "two different commands, /test and /cancel"},
		`/test a="b`:     {"MalformedCommand", "not closed"},
		"/test build other=1": {
			"BadArgument", "the Repository has no param other in spec.params. Those that can be set: version",
		},
		"/test build secret=1":            {"BadArgument", "secret gets its value from a secret"},
		"/test revision=1":                {"BadArgument", "revision is a variable of Plumbline's own"},
		"/test git_auth_secret=1":         {"BadArgument", "a variable of Plumbline's own"},
		"/test target_url=1":              {"BadArgument", "a variable of Plumbline's own"},
		"/test body=1":                    {"BadArgument", "a variable of Plumbline's own"},
		"/test version=1 event_type=push": {"BadArgument", "event_type is a variable"},
		"/test pull_request_number=7":     {"BadArgument", "a variable of Plumbline's own"},
	} {
		in := commented()
		in.Repository.Spec.Params = &params
		w := written(comment)
		made := w.make(t, in)
		if made.Disposition != v1alpha1.DispositionIgnored || made.Reason != want.reason ||
			!strings.Contains(made.Message, want.says) || len(made.Runs) != 0 || len(made.Message) > 4000 {
			t.Errorf("%.80q: %s %s %q, want %s with %q", comment, made.Disposition, made.Reason, made.Message, want.reason,
				want.says)
		}
		if w.count("files") != 0 && want.reason != "UnknownName" {
			t.Errorf("%.80q: asked %v", comment, w.asked)
		}
	}
}

// many500 are names that do not exist.
func many500() string {
	var all strings.Builder
	for i := range 500 {
		fmt.Fprintf(&all, " x%d", i+1)
	}
	return all.String()
}

// S17: the permission of the user is known before anything else is read.
func TestUntrustedCommandCostsTwoCalls(t *testing.T) {
	t.Parallel()
	for _, comment := range []string{"/test", "/test build", "/test\n/cancel", "/ok-to-test", "/cancel"} {
		w := written(comment)
		w.writers = "author"
		made := w.make(t, commented())
		if diff := cmp.Diff([]string{"comment", "access of member", "ownership of member"}, w.asked); diff != "" ||
			made.Reason != "NotApproved" || made.Disposition != v1alpha1.DispositionIgnored {
			t.Errorf("%q: %+v: %s", comment, made, diff)
		}
		w = written(comment)
		w.accessErr = down()
		if _, err := plan.Make(t.Context(), commented(), w.sources()); err == nil ||
			w.count("complete")+w.count("files") != 0 {
			t.Errorf("%q, of which it is not known who wrote it: %v, asked %v", comment, err, w.asked)
		}
	}
	w := written("/test")
	w.writers, w.records = "member", []history.Record{} // and the pull request is an untrusted user's
	if made := w.make(t, commented()); made.Reason != "NotApproved" || w.count("files") != 0 ||
		w.count("access of member") != 1 {
		t.Errorf("%+v, asked %v", made, w.asked)
	}
	in := commented()
	in.Repository.Spec.Settings = &pacv1alpha1.Settings{Policy: &pacv1alpha1.Policy{}}
	w = written("/test")
	if made := w.make(t, in); made.Reason != "NotApproved" || w.count("access") != 0 || w.count("complete") != 0 {
		t.Errorf("with a policy: %+v, asked %v", made, w.asked)
	}
}

func TestCommandNeedsPrefixOfRepository(t *testing.T) {
	t.Parallel()
	for comment, want := range map[string]int{"/ci test build": 1, "/test build": 0, "/ci deploy": 0, "/test": 0} {
		for _, prefix := range []string{"ci", "/ci"} {
			in := commented()
			in.Repository.Spec.Settings = &pacv1alpha1.Settings{GitOpsCommandPrefix: prefix}
			w := written(comment)
			w.files = several()[:3]
			if made := w.make(t, in); len(created(made)) != want {
				t.Errorf("%q with prefix %q: %v", comment, prefix, reasons(made))
			}
		}
	}
	in := commented()
	in.Repository.Spec.Settings = &pacv1alpha1.Settings{GitOpsCommandPrefix: "my ci"}
	made := written("/test build").make(t, in)
	if diff := cmp.Diff([]string{"deploy"}, created(made)); diff != "" || made.Spec.EventType != "on-comment" {
		t.Errorf("with a prefix that is none every comment is a plain one: %s", diff)
	}
}

// S20: definitions that the author of the pull request could not change decide which pipelines a
// name starts.
func TestCommandOnDefaultBranchDefinitionsIsRestricted(t *testing.T) {
	t.Parallel()
	yes := true
	for name, test := range map[string]struct {
		any  *bool
		want []string
	}{
		"by default":           {nil, []string{"build", "manual", "labelled"}},
		"settings.test_any":    {&yes, []string{"build", "pushed", "manual", "labelled", "expression"}},
		"settings.test_any no": {new(bool), []string{"build", "manual", "labelled"}},
	} {
		in := commented()
		in.Repository.Spec.Settings = &pacv1alpha1.Settings{PipelineRunProvenance: "default_branch", TestAny: test.any}
		w := written("/test build pushed manual labelled elsewhere expression")
		w.files = append(w.files, edited(pipeline("expression"), `on-event: "[push]"`, `on-cel-expression: event == "push"`))
		made := w.make(t, in)
		if diff := cmp.Diff(test.want, created(made)); diff != "" || made.DefinitionSHA != defaultSHA {
			t.Errorf("%s: %s", name, diff)
		}
		if why := reasons(made)["pushed"]; test.any == nil && !strings.Contains(why, "settings.test_any: true") {
			t.Errorf("the decision about pushed says %q", why)
		}
	}
}

func TestCommandArgumentsSetParams(t *testing.T) {
	t.Parallel()
	in := commented()
	in.Repository.Spec.Params = &[]pacv1alpha1.Params{{Name: "version", Value: "1"}, {Name: "where", Value: "here"},
		{Name: "version", Value: "2", Filter: `pac.event == "pull_request"`}}
	w := written(`/test version="{{ sender }} $(x)"` + "\nwhere=there\nthanks")
	w.files = []git.File{
		edited(pulled("a"), `script: "true"`, `script: "echo {{ version }} {{ where }}"`),
		pulled("b", `on-cel-expression: where == "there"`), pulled("c", `on-cel-expression: where == "here"`),
	}
	made := w.make(t, in)
	if diff := cmp.Diff([]string{"a", "b"}, created(made)); diff != "" {
		t.Fatal(diff, reasons(made))
	}
	script := decoded(t, made.Runs[0]).Spec.PipelineSpec.Tasks[0].TaskSpec.Steps[0].Script
	if !strings.HasPrefix(script, "echo {{ sender }} ") || strings.Contains(script, "$(x)") ||
		!strings.HasSuffix(script, " there") {
		t.Errorf("the script is %q", script)
	}
}

// A broken definition is reported to the command that names it; other pipelines are not affected.
func TestCommandReportsPipelinesItCannotStart(t *testing.T) {
	t.Parallel()
	broken := edited(pulled("broken"), "spec:\n", "spec:\n  timeouts: 7\n")
	for comment, want := range map[string][]string{"/test": {"broken"}, "/test broken": {"broken"}, "/test build": nil} {
		w := written(comment)
		w.files = append(several(), broken)
		made := w.make(t, commented())
		var refused []string
		for _, run := range made.Runs {
			if run.Refused != nil {
				refused = append(refused, run.Pipeline)
			}
		}
		if diff := cmp.Diff(want, refused); diff != "" {
			t.Errorf("%q: %s", comment, diff)
		}
	}
	w := written("/test")
	w.files = many(1001)
	if made := w.make(t, commented()); made.Disposition != v1alpha1.DispositionRuns || len(made.Runs) != 1 ||
		made.Runs[0].Refused == nil {
		t.Errorf("of an unreadable directory: %+v", made)
	}
}

// A command is planned again like any event: open decisions are decided at the same commit, and
// permissions are not read again.
func TestWaitingCommandKeepsItsType(t *testing.T) {
	t.Parallel()
	w := written("/test later build")
	w.files, w.addressErr = []git.File{pulled("build"), pulled("later", "task: "+address), pulled("lint")}, down()
	made := w.make(t, commented())
	if diff := cmp.Diff([]string{"build"}, created(made)); diff != "" || made.Wait == nil {
		t.Fatalf("%+v: %s", made, diff)
	}
	w.addressErr, w.tree, w.asked, w.writers = nil, map[string]string{address: task}, nil, ""
	made = w.make(t, again(commented(), made))
	if diff := cmp.Diff([]string{"later"}, created(made)); diff != "" || made.Wait != nil || w.count("access") != 0 ||
		made.Spec.EventType != "test-comment" {
		t.Errorf("asked %v: %s", w.asked, diff)
	}
	if got := decoded(t, made.Runs[1]).Name; got != resources.RunName("push-1", ".tekton/later.yaml", 0, "later") {
		t.Errorf("its run is %s", got)
	}
	w = written("/test")
	w.noted = "/test build"
	var over *plan.IgnoredError
	if _, err := plan.Make(t.Context(), commented(), w.sources()); !errors.As(err, &over) ||
		over.Why.Reason != "CommentEdited" {
		t.Errorf("edited since: %v", err)
	}
}
