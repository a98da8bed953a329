// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

const (
	sha        = "0123456789012345678901234567890123456789"
	defaultSHA = "dddddddddddddddddddddddddddddddddddddddd"
)

// env implements all Sources, and records what was read.
type env struct {
	asked    []string
	files    []git.File
	tree     map[string]string // other files, by path or address
	skipCI   bool
	changed  git.Changes
	pulls    []git.Pull
	writers  string
	members  string
	owners   string
	teams    map[string]string // members by team
	fails    string            // questions about access that begin so are not answered
	said     string
	payload  string
	acted    string // who caused the event, by its payload
	secrets  map[template.SecretRef]string
	moved    string                       // the head of a comment's pull request
	noted    string                       // what the comment says at the Git service, which not every one is asked for
	true     func(*v1alpha1.GitEventSpec) // what the Git service says of other events, if it is asked
	records  []history.Record             // what was recorded of the same pull request; nil is its opening
	touched  map[string]string            // what a commit has that no other has alike
	versions []git.Version                // the heads of the pull request, if the Git service is asked for them
	actor    *string                      // who the Git service says has acted, if it signs nothing
	heads    map[string]string            // where branches and tags are, of a comment on a commit

	headErr, changedErr, pullsErr, accessErr, completeErr, payloadErr, addressErr, actorErr, recordsErr, versionsErr,
	differErr, failsWith error
}

func (w *env) ask(question string) { w.asked = append(w.asked, question) }

// count returns how often something with this prefix was read.
func (w *env) count(question string) int {
	n := 0
	for _, q := range w.asked {
		if strings.HasPrefix(q, question) {
			n++
		}
	}
	return n
}

func (w *env) Head(_ context.Context, e *v1alpha1.GitEventSpec) (git.Head, error) {
	w.ask("head")
	return git.Head{SHA: e.SHA, Commit: v1alpha1.Commit{Title: "a change", SkipCI: w.skipCI}, Project: e.Project},
		w.headErr
}

func (w *env) Files(_ context.Context, sha, dir string) ([]git.File, error) {
	w.ask("files " + sha + " " + dir)
	return w.files, nil
}

func (w *env) File(_ context.Context, sha, path string) ([]byte, error) {
	w.ask("file " + sha + " " + path)
	return w.read(path)
}

func (w *env) FileAt(_ context.Context, address string) ([]byte, error) {
	w.ask("address " + address)
	if w.addressErr != nil {
		return nil, w.addressErr
	}
	return w.read(address)
}

func (w *env) read(name string) ([]byte, error) {
	text, found := w.tree[name]
	if !found {
		return nil, fault.Invalidf("FileNotFound", "%s does not exist", name)
	}
	return []byte(text), nil
}

func (w *env) Changed(context.Context, *v1alpha1.GitEventSpec) (git.Changes, error) {
	w.ask("changed")
	return w.changed, w.changedErr
}

func (w *env) DefaultBranch(context.Context) (string, error) {
	w.ask("default branch")
	return defaultSHA, nil
}

func (w *env) Pulls(context.Context, string) ([]git.Pull, error) {
	w.ask("pulls")
	return w.pulls, w.pullsErr
}

func (w *env) Complete(_ context.Context, e *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
	if e.Comment == nil && w.true == nil { // as a service whose deliveries are signed
		return e, nil
	}
	w.ask("complete")
	if w.completeErr != nil {
		return nil, w.completeErr
	}
	e = e.DeepCopy()
	if e.Comment == nil {
		w.true(e)
		return e, nil
	}
	if e.PullRequest == nil {
		return w.pointed(e)
	}
	e.SHA, e.BaseRef, e.HeadRef, e.Comment.Body = w.moved, "main", "topic", w.noted
	return e, nil
}

func (w *env) Versions(context.Context, *v1alpha1.GitEventSpec) ([]git.Version, error) {
	if w.versions != nil || w.versionsErr != nil {
		w.ask("versions")
	}
	return w.versions, w.versionsErr
}

// knows records a read of an account's permission.
func (w *env) knows(question string) error {
	w.ask(question)
	if w.fails != "" && strings.HasPrefix(question, w.fails) {
		return cmp.Or(w.failsWith, down())
	}
	return w.accessErr
}

func (w *env) CanWrite(_ context.Context, user string) (bool, error) {
	return slices.Contains(strings.Fields(w.writers), user), w.knows("access of " + user)
}

func (w *env) Member(_ context.Context, user string) (bool, error) {
	return slices.Contains(strings.Fields(w.members), user), w.knows("membership of " + user)
}

func (w *env) InTeam(_ context.Context, team, user string) (bool, error) {
	if err := w.knows(team + " with " + user); err != nil {
		return false, err
	}
	members, found := w.teams[team]
	if !found {
		return false, fault.Invalidf(fault.ReasonTeamNotFound, "there is no team %s", team)
	}
	return slices.Contains(strings.Fields(members), user), nil
}

func (w *env) Owner(_ context.Context, user string) (bool, error) {
	return slices.Contains(strings.Fields(w.owners), user), w.knows("ownership of " + user)
}

// Actor is that of a service that signs deliveries, unless the env names an actor.
func (w *env) Actor(_ context.Context, _ *v1alpha1.GitEventSpec, told string) (string, error) {
	if w.actor == nil {
		return told, nil
	}
	w.ask("who acted")
	return *w.actor, w.actorErr
}

func (w *env) sources() plan.Sources {
	return plan.Sources{
		Source: w, History: w, Access: w, Remote: plan.Remote{Addresses: w},
		Delivery: plan.Delivery{
			Comment: func(context.Context) (string, error) { w.ask("comment"); return w.said, w.payloadErr },
			Actor:   func(context.Context) (string, error) { w.ask("actor"); return w.acted, w.payloadErr },
			Records: func(context.Context) ([]history.Record, error) { w.ask("records"); return w.onRecord(), w.recordsErr },
			Payload: func(context.Context) ([]byte, error) { w.ask("payload"); return []byte(w.payload), w.payloadErr },
		},
		Secret: func(_ context.Context, ref template.SecretRef) (string, error) {
			w.ask("secret " + ref.Name)
			value, found := w.secrets[ref]
			if !found {
				return "", fault.Operatorf(fault.ReasonSecretMissing, "there is no %s", ref.Name)
			}
			return value, nil
		},
	}
}

// make plans and must not fail.
func (w *env) make(t *testing.T, in plan.Input) *plan.Plan {
	t.Helper()
	made, err := plan.Make(t.Context(), in, w.sources())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// push is a push to main.
func push() plan.Input {
	return plan.Input{
		Event: plan.Event{Namespace: "plumbline", Name: "push-1", Spec: &v1alpha1.GitEventSpec{
			Provider: "fake", Host: "git.example", DeliveryKey: "1", Trigger: v1alpha1.TriggerPush, EventType: "push",
			Repository: v1alpha1.RepositoryReference{Namespace: "team", Name: "app", URL: "https://git.example/acme/app"},
			Project:    v1alpha1.Project{Owner: "acme", Name: "app", ID: 5, URL: "https://git.example/acme/app"},
			SHA:        sha, BaseRef: "refs/heads/main", HeadRef: "refs/heads/main", HeadURL: "https://git.example/acme/app",
			Sender: "dev",
		}},
		Repository: &pacv1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}},
		Config:     config.Default(), Version: "test",
	}
}

// forked is an author's pull request from a fork to main.
func forked() plan.Input {
	in := push()
	in.Event.Spec.Trigger, in.Event.Spec.EventType = v1alpha1.TriggerPullRequest, "pull_request"
	in.Event.Spec.BaseRef, in.Event.Spec.HeadRef = "main", "topic"
	in.Event.Spec.PullRequest, in.Event.Spec.Actor = &v1alpha1.PullRequest{Number: 3, Author: "author", HeadProjectID: 99},
		"author"
	return in
}

// onRecord has the recorded events of the pull request: its opening, unless the test says
// otherwise.
func (w *env) onRecord() []history.Record {
	if w.records != nil {
		return w.records
	}
	return []history.Record{onRecord("pull-1", sha, 1, v1alpha1.DispositionRuns)}
}

// again is the same event with what a plan left open.
func again(in plan.Input, made *plan.Plan) plan.Input {
	in.Earlier = &plan.Earlier{Commits: made.Commits, Decisions: slices.Clone(made.Decisions)}
	for _, run := range made.Runs {
		run.Manifest, run.Wait = nil, nil
		in.Earlier.Runs = append(in.Earlier.Runs, run)
	}
	return in
}

// pipeline returns a pipeline for pushes to main, with annotations ("name: value", without the
// common prefix).
func pipeline(name string, annotations ...string) git.File {
	text := "apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata:\n  name: " + name + "\n  annotations:\n"
	for _, a := range append([]string{`on-event: "[push]"`, `on-target-branch: "[main]"`}, annotations...) {
		text += "    " + pipelinesascode.GroupName + "/" + a + "\n"
	}
	text += "spec:\n  pipelineSpec:\n    tasks:\n      - name: build\n        taskSpec:\n          steps: [{name: s, image: busybox, script: \"true\"}]\n"
	return git.File{Path: ".tekton/" + name + ".yaml", Data: []byte(text)}
}

// edited is a file with texts replaced, in pairs of old and new.
func edited(file git.File, pairs ...string) git.File {
	file.Data = []byte(strings.NewReplacer(pairs...).Replace(string(file.Data)))
	return file
}

// reasons are the decisions' by pipeline.
// decoded is a run's PipelineRun.
// created are the names of the pipelines whose PipelineRuns are to be created now.
