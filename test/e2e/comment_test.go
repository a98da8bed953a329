// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// said is the delivery of a comment that a user has just written.
func (w *world) said(number int, user, body string) forge.Delivery {
	return w.forge.CommentDelivery(forge.CommentEvent{Repo: repoName, ID: w.forge.Comment(repoName, number, user, body)})
}

// onComment is the pipeline "deploy", for comments only, that shows what it was started with.
func onComment() string {
	text := variables("deploy", "push", "none", "revision", "sender", "event_type", "trigger_comment", "source_branch", "source_url", "pull_request_number")
	return strings.Replace(text, "spec:\n", "    "+pipelinesascode.GroupName+"/on-comment: '^/deploy'\nspec:\n", 1)
}

// A comment starts the pipelines that ask for it, at the head of its pull request, once for all its copies; the same
// comment written again runs again, beside what the commit shows already.
func TestACommentStartsWhatAsksForIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	w.git.grant("Member", "write")
	w.git.grant("writer", "write")
	w.git.commit("main", forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("pr", "pull_request"), ".tekton/deploy.yaml": onComment()}})
	number, sha := w.forkPull("writer")
	w.deliver(w.opened(number), 202)
	w.checkReaches(sha, checkName("pr"), "success", soon)
	first := w.said(number, "Member", "/deploy staging\r\n\"now\": {{ sender }}\r\n")
	w.deliver(first, 202)
	w.deliver(first, 202)
	w.checkReaches(sha, checkName("deploy-"), "success", soon)
	w.settled(soon)
	w.started("deploy-", "pr")
	w.oneOf(first)
	want := map[string]string{
		"revision": sha, "sender": "member", "event_type": "on-comment", "trigger_comment": `/deploy staging\n"now": {{ sender }}\n`,
		"source_branch": "feature", "source_url": w.git.url() + "/writer/app", "pull_request_number": "1",
	}
	if diff := cmp.Diff(want, w.params(sha)); diff != "" {
		t.Errorf("parameters of the PipelineRun (-want +got):\n%s", diff)
	}
	record := w.recordOf(first)
	if !strings.HasPrefix(record.Name, "comment-") || record.Spec.SHA != "" || record.Status.Plan.HeadSHA != sha {
		t.Errorf("the record %s is of commit %q and was planned at %q", record.Name, record.Spec.SHA, record.Status.Plan.HeadSHA)
	}
	w.deliver(w.said(number, "Member", "thanks"), 202)
	w.deliver(w.said(number, "writer", "/deploy again"), 202)
	w.eventually(soon, "the second comment has a check of its own", func() error {
		if len(w.git.checks(sha)) != 3 {
			return errMissing
		}
		return nil
	})
	w.settled(soon)
	w.started("deploy-", "deploy-", "pr")
	w.neverFailed(sha)
	w.invariants()
}

// Neither a stranger's comment nor a comment on a stranger's pull request starts anything, asks for approval or leaves a
// check; while it is not known who somebody is, the comment waits. Other comments are not even recorded.
func TestACommentRunsNobodysCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1, proxied: true})
	w.claimed()
	w.git.grant("member", "write")
	w.git.grant("unknown", "write")
	w.git.commit("main", forge.Change{Files: map[string]string{".tekton/deploy.yaml": onComment()}})
	w.git.commit("topic", forge.Change{Files: map[string]string{"a": "1"}, Author: "member"})
	own := w.git.open("", "topic", "member")
	fork, _ := w.forkPull("stranger")
	asked := w.git.inject(askPermission, forge.Fault{Match: about("unknown"), Do: forge.ServerError502HTML()})
	waits := w.said(own, "unknown", "/deploy")
	w.deliver(waits, 202)
	reasons := map[string]delivery{
		"The author of the comment has no write access to this repository and is not in OWNERS.":      w.said(own, "eve", "/deploy"),
		"The author of the pull request has no write access to this repository and is not in OWNERS.": w.said(fork, "member", "/deploy"),
	}
	for _, delivery := range reasons {
		w.deliver(delivery, 202)
	}
	for _, ignored := range []delivery{
		w.said(own, "plumbline[bot]", "/deploy"),
		w.forge.CommentDelivery(forge.CommentEvent{Repo: repoName, ID: w.forge.Comment(repoName, own, "member", "/deploy"), Action: "edited"}),
	} {
		w.deliver(ignored, 200)
	}
	for reason, delivery := range reasons {
		if s := w.settledOf(delivery).Status; s.Disposition != v1alpha1.DispositionIgnored || s.Plan.Message != reason {
			t.Errorf("%s %q, want Ignored: %s", s.Disposition, s.Plan.Message, reason)
		}
	}
	w.met("unknown", asked)
	w.waitsForAccess("unknown", w.git.tip("topic"), waits)
	w.nothingRan()
	if writes := w.git.log().writes; len(writes) != 0 {
		t.Errorf("the forge was told %+v, want nothing", writes)
	}
	if events := w.events(); len(events) != 3 {
		t.Errorf("%d records, want those of three comments", len(events))
	}
	asked.Remove()
	w.settled(afterFault)
	w.started("deploy-")
	w.invariants()
}
