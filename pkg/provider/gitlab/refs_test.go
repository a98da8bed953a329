// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/test/forge"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// of returns a check of a run; every ref's pipeline of the same definition has the same name.
func of(run string, state status.State, conclusion status.Conclusion) status.Check {
	c := check(state, conclusion)
	c.ExternalID = run
	return c
}

// at is the bench's commit on another ref.
func (b bench) at(ref string) bench {
	b.head.Ref = ref
	return b
}

// wantPipelines compares the pipelines of the bench's commit, each "ref status: state of each
// status, oldest first".
func (b bench) wantPipelines(t *testing.T, project string, want ...string) {
	t.Helper()
	var got []string
	for _, p := range b.Pipelines(project, b.head.SHA) {
		line := p.Ref + " " + p.Status + ":"
		for _, s := range b.StatusesFor(project, b.head.SHA) {
			if s.PipelineID == p.ID {
				line += " " + s.State
			}
		}
		got = append(got, line)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("pipelines of %s (-want +got):\n%s", project, d)
	}
}

func TestEachRefHasItsOwnPipeline(t *testing.T) {
	for name, others := range map[string][]string{
		"two branches":                 {"refs/heads/release-1"},
		"a branch and a tag":           {"refs/tags/v1"},
		"a branch and a merge request": {"topic"},
		"three refs":                   {"refs/heads/release-1", "refs/tags/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, forgelab.Options{})
			main := b.put(t, "", of("main-1", status.InProgress, ""))
			var ids, want []string
			for _, ref := range others {
				ids = append(ids, b.at(ref).put(t, "", of(ref, status.InProgress, "")))
				want = append(want, refName(ref)+" success: success")
			}
			b.put(t, main, of("main-1", status.Completed, status.Failure))
			for i, ref := range others {
				b.at(ref).put(t, ids[i], of(ref, status.Completed, status.Success))
			}
			b.wantPipelines(t, testProject, append([]string{"main failed: failed"}, want...)...)
		})
	}
}

func TestLaterRefKeepsEarlierVerdict(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	b.put(t, "", of("main-1", status.Completed, status.Failure))
	b.at("refs/tags/v1").put(t, "", of("v1-1", status.Completed, status.Success))
	b.wantPipelines(t, testProject, "main failed: failed", "v1 success: success")
}

func TestRerunReplacesStatusOfItsRef(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	b.put(t, "", of("main-1", status.Completed, status.Failure))
	b.at("release-1").put(t, "", of("release-1", status.InProgress, ""))
	b.put(t, "", of("main-2", status.InProgress, ""))
	b.wantPipelines(t, testProject, "main running: failed running", "release-1 running: running")
	b.at("release-1").put(t, "", of("release-2", status.InProgress, ""))
	b.put(t, "", of("main-2", status.Completed, status.Success))
	b.wantPipelines(t, testProject, "main success: failed success", "release-1 running: canceled running")
}

// A status that GitLab stored without answering is found again, although another ref has one of the
// same name.
func TestUnansweredStatusIsFoundOnItsRef(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	b.put(t, "", of("main-1", status.InProgress, ""))
	release := b.at("release-1")
	b.Inject(forgelab.Fault{Route: forgelab.RouteStatusCreate, Count: 1, Do: forge.ApplyThenAnswer(http.StatusBadGateway)})
	_, err := release.client.Put(t.Context(), release.head, "", of("release-1", status.InProgress, ""), false)
	if !fault.Is(err, fault.Transient) {
		t.Fatalf("%v, want a Transient fault", err)
	}
	release.put(t, "", of("release-1", status.Completed, status.Success))
	b.wantPipelines(t, testProject, "main running: running", "release-1 success: success")
}

// The sweep closes checks that no event reports any more, and none of another ref.
func TestOrphanedStatusIsClosedOnItsRef(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	b.put(t, "", of("main-1", status.InProgress, ""))
	b.at("release-1").put(t, "", of("release-1", status.InProgress, ""))
	closing := of("release-1", status.Completed, status.Cancelled)
	closing.OnlyOpen = true
	if _, err := b.client.Put(t.Context(), b.head, "", closing, false); err != nil { // it is not there
		t.Fatal(err)
	}
	b.wantPipelines(t, testProject, "main running: running", "release-1 running: running")
	b.at("release-1").put(t, "", closing)
	b.wantPipelines(t, testProject, "main running: running", "release-1 canceled: canceled")
}

// An earlier version put the status of a run into the pipeline of another ref of the commit: it is
// not left pending there.
func TestStatusOfEarlierVersionIsClosed(t *testing.T) {
	for name, last := range map[string]status.Check{
		"its run goes on":   of("release-1", status.Completed, status.Failure),
		"its event is gone": of("release-1", status.Completed, status.Cancelled),
	} {
		b := newBench(t, forgelab.Options{})
		b.put(t, "", of("main-1", status.Completed, status.Success))
		id, want := b.put(t, "", of("release-1", status.InProgress, "")), []string{"main canceled: success canceled"}
		if last.OnlyOpen = name == "its event is gone"; !last.OnlyOpen {
			want = append(want, "release-1 failed: failed")
		}
		b.head.Ref = "refs/heads/release-1"
		if _, err := b.client.Put(t.Context(), b.head, id, last, false); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b.wantPipelines(t, testProject, want...)
	}
}

// GitLab accepts 255 characters of a ref. Without a ref it would choose the newest pipeline of the
// commit, which is another ref's.
func TestLongRefHasItsOwnPipeline(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	b.put(t, "", of("main-1", status.Completed, status.Failure))
	long := strings.Repeat("x", maxField)
	for _, ref := range []string{"refs/heads/" + long + "a", "refs/heads/" + long + "b"} {
		b.at(ref).put(t, "", of(ref, status.Completed, status.Success))
	}
	if got := b.Pipelines(testProject, b.head.SHA); len(got) != 3 || got[0].Status != "failed" {
		t.Errorf("%+v, want three, the first of which failed", got)
	}
	b.at("refs/heads/"+strings.Repeat("ü", maxField)).put(t, "", of("ü", status.Completed, status.Success))
	if got := b.Pipelines(testProject, b.head.SHA); len(got) != 4 || got[3].Ref != strings.Repeat("ü", maxField) {
		t.Errorf("%+v, want the ref as it is", got)
	}
}

// A fork's commit may also be on a branch of the target: the merge request's run says nothing about
// that branch.
func TestForkStatusIsNotOfTargetBranch(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	b.SetVisibility(testProject, forgelab.Public)
	b.SetBranch(testProject, "old", b.head.SHA, "dev")
	sha := b.Commit("main", map[string]string{"x": "promoted"})
	b.CreateProject(testFork, forgelab.ProjectOptions{ForkOf: testProject, Visibility: forgelab.Public})
	iid := b.OpenMergeRequest(forgelab.NewMergeRequest{
		Target: testProject, TargetBranch: "old", Source: testFork, SourceBranch: "main", Author: "stranger",
	})
	b.head.SHA = sha
	b.put(t, "", of("main-1", status.Completed, status.Failure))
	spec := b.decode(b.MergeRequestDelivery(forgelab.MergeRequestEvent{Project: testProject, IID: iid, Action: "open"}))
	fork := b
	fork.head = git.Head{SHA: spec.SHA, Project: spec.Project, Ref: spec.HeadRef, PullRequest: spec.PullRequest}
	fork.put(t, "", of("fork-1", status.Completed, status.Success))
	b.wantPipelines(t, testProject, "main failed: failed")
	if notes := b.ours(iid); len(notes) != 1 {
		t.Errorf("%+v, want one note with the verdict", notes)
	}
}

// If the target project has GitLab's own pipeline of the merge request, the status is in that
// pipeline, which the merge request shows.
func TestForkStatusIsInMergeRequestPipeline(t *testing.T) {
	b, iid := forked(t, forgelab.Public, "")
	b.SetBranch(testProject, "elsewhere", b.head.SHA, "dev")
	b.NativePipeline(testProject, "refs/merge-requests/1/head", b.head.SHA)
	b.NativePipeline(testProject, "elsewhere", b.head.SHA)
	id := b.put(t, "", of("fork-1", status.InProgress, ""))
	if again := b.put(t, id, of("fork-1", status.Completed, status.Failure)); again != id {
		t.Errorf("%s, then %s", id, again)
	}
	b.wantPipelines(t, testProject, "refs/merge-requests/1/head failed: success failed", "elsewhere success: success")
	if notes := b.ours(iid); len(notes) != 0 {
		t.Errorf("there are notes as well: %+v", notes)
	}
}
