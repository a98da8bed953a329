// SPDX-License-Identifier: Apache-2.0

package github

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/forge"
)

const (
	checkRerequested = "check-run-rerequested.json"
	suiteRerequested = "check-suite-rerequested.json"
)

// rerequested is what both deliveries have in common.
func rerequested(name string, rerun v1alpha1.Rerun) *v1alpha1.GitEventSpec {
	want := event(func(s *v1alpha1.GitEventSpec) {
		s.Trigger, s.EventType, s.Action, s.Sender, s.SHA = "push", "push", "rerequested", "ada",
			"1e15f1e15f1e15f1e15f1e15f1e15f1e15f1e15f"
		s.BaseRef, s.HeadRef, s.HeadURL = "refs/heads/topic", "refs/heads/topic", "https://github.com/acme/app"
		rerun.AppID, rerun.Pulls = 7, []int64{12}
		s.Rerun = &rerun
	})
	want.Headers["X-Github-Event"] = name
	return want
}

// A check, and the suite of all checks of a commit, are requested again. A pull request of another
// repository with the same commit is ignored.
func TestDecodeRerun(t *testing.T) {
	for _, c := range []struct {
		event, file string
		want        v1alpha1.Rerun
	}{
		{"check_run", checkRerequested, v1alpha1.Rerun{Check: "Plumbline CI / build", ExternalID: "build-0123456789abcdef"}},
		{"check_suite", suiteRerequested, v1alpha1.Rerun{All: true}},
	} {
		got, err := webhook{}.Decode(headers(c.event), recorded(t, c.file))
		if err != nil {
			t.Fatal(err)
		}
		want := rerequested(c.event, c.want)
		want.Body, want.HappenedAt = got.Body, got.HappenedAt // TestEventNameIgnoresDeliveryID
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if !strings.HasPrefix(got.EventName(), "rerun-") {
			t.Errorf("the record is called %s", got.EventName())
		}
	}
}

// For the commit of a fork GitHub names neither branch nor pull request.
func TestDecodeRerunOfAFork(t *testing.T) {
	body := bytes.ReplaceAll(recorded(t, suiteRerequested), []byte(`"head_branch": "topic"`),
		[]byte(`"head_branch": null`))
	body = bytes.ReplaceAll(body, []byte(`"number": `), []byte(`"number": -`))
	got, err := webhook{}.Decode(headers("check_suite"), body)
	if err != nil || got.BaseRef != "" || got.HeadRef != "" || len(got.Rerun.Pulls) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestDecodeRefusesReruns(t *testing.T) {
	for _, c := range []struct {
		name, event, file, old, new string
		class                       fault.Class
		message                     string
	}{
		{"a check that was made", "check_run", checkRerequested, `"rerequested"`, `"created"`, fault.Ignored,
			`check_run action "created"`},
		{"a button of ours", "check_run", checkRerequested, `"rerequested"`, `"requested_action"`, fault.Ignored,
			`"requested_action"`},
		{"a suite that was made", "check_suite", suiteRerequested, `"rerequested"`, `"requested"`, fault.Ignored,
			`check_suite action "requested"`},
		{"a check without our name for it", "check_run", checkRerequested, `"build-0123456789abcdef"`, `""`, fault.Ignored,
			"no external id"},
		{"no check", "check_run", checkRerequested, `"check_run": {`, `"check_run_": {`, fault.Invalid, "check_run"},
		{"no suite", "check_suite", suiteRerequested, `"check_suite": {`, `"check_suite_": {`, fault.Invalid, "check_suite"},
		{"no App", "check_run", checkRerequested, `"app": {`, `"app_": {`, fault.Invalid, "check_run.app.id"},
		{"no App of the suite", "check_suite", suiteRerequested, `"app": {`, `"app_": {`, fault.Invalid,
			"check_suite.app.id"},
		{"no commit", "check_run", checkRerequested, `"head_sha": "1e15`, `"head_sha": "main`, fault.Invalid, "head_sha"},
		{"no sender", "check_run", checkRerequested, `"sender": {`, `"sender_": {`, fault.Invalid, "sender"},
		{"a name that is no text", "check_run", checkRerequested, `"Plumbline CI / build"`, `"a\u0000"`, fault.Invalid,
			"check_run.name"},
		{"a branch that is no text", "check_suite", suiteRerequested, `"head_branch": "topic"`, `"head_branch": "\u0000"`,
			fault.Invalid, "head_branch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := recorded(t, c.file)
			if !bytes.Contains(body, []byte(c.old)) {
				t.Fatalf("no %s in %s", c.old, c.file)
			}
			_, err := webhook{}.Decode(headers(c.event), bytes.Replace(body, []byte(c.old), []byte(c.new), 1))
			if f := fault.Of(err); f == nil || f.Class != c.class || !strings.Contains(f.Message, c.message) {
				t.Errorf("%v, want %s with %q", err, c.class, c.message)
			}
		})
	}
}

// S27: a re-run in a pull request is completed with the pull request's current state; another App's
// check starts nothing, without a call.
func TestCompleteIgnoresRerunOfAnotherApp(t *testing.T) {
	b := newBench(t)
	b.AddUser("dev")
	b.GitHub.Commit(testRepo, "topic", forge.Change{Files: map[string]string{"a": "1"}})
	number := b.OpenPullRequest(forge.NewPull{Base: testRepo, HeadBranch: "topic", Author: "dev", Title: "a change"})
	b.LabelPull(testRepo, number, "bug")
	event := &v1alpha1.GitEventSpec{SHA: strings.Repeat("a", 40), Rerun: &v1alpha1.Rerun{AppID: testApp},
		PullRequest: &v1alpha1.PullRequest{Number: int64(number)}}
	got, err := b.client.Complete(t.Context(), event)
	if err != nil || got.HeadRef != "topic" || got.BaseRef != "main" || got.PullRequest.Author != "dev" ||
		len(got.PullRequest.Labels) != 1 || got.PullRequest.Title == "" {
		t.Errorf("%+v, %v", got, err)
	}
	event.Rerun.AppID++
	calls := len(b.Requests())
	if _, err := b.client.Complete(t.Context(), event); !fault.Is(err, fault.Ignored) || len(b.Requests()) != calls {
		t.Errorf("%v after %d calls, want Ignored without any", err, len(b.Requests())-calls)
	}
}
