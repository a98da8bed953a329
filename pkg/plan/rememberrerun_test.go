// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// A command on a remembered commit approves that commit, or nothing (S21).
func TestCommandIgnoresRememberedApproval(t *testing.T) {
	t.Parallel()
	in := saying("member")
	config := *in.Config
	config.RememberApprovals = true
	in.Config = &config
	for head, runs := range map[string]bool{sha: true, laterSHA: false} {
		w := &env{files: []git.File{pipeline("a", `on-cel-expression: 'event_type != ""'`)}, writers: "member", said: "/test",
			moved: head}
		w.records = []history.Record{
			onRecord("pull-1", sha, 1, ""), approvedBefore(defaultSHA, "main"), onRecord("pull-2", laterSHA, 7, ""),
		}
		if head == sha {
			w.records = w.records[:2]
		}
		made := w.make(t, in)
		if (len(made.Runs) > 0) != runs || runs && made.Approval.SHA != "" || w.count("differ") != 0 {
			t.Errorf("%s: %+v, approval %+v, asked %v", head, made.Ending, made.Approval, w.asked)
		}
	}
}

// A remembered commit has the definitions of the default branch. If the Repository says that they
// are the commit's own, it has those of the approved commit, because .tekton may refer to any file.
func TestRememberedApprovalUsesApprovedDefinitions(t *testing.T) {
	t.Parallel()
	for provenance, want := range map[string]string{"": defaultSHA, "source": sha} {
		in := remembering()
		in.Repository.Spec.Settings = &pacv1alpha1.Settings{PipelineRunProvenance: provenance}
		w := &env{files: []git.File{pulled("a")}, writers: "member", records: []history.Record{approvedBefore(sha, "main")}}
		made := w.make(t, in)
		if made.DefinitionSHA != want || made.HeadSHA != laterSHA || w.count("files "+want) != 1 {
			t.Errorf("%q: definitions of %s, want %s; asked %v", provenance, made.DefinitionSHA, want, w.asked)
		}
	}
}

// S27: what ran because of a remembered approval runs again on request while the approval counts,
// which is checked again.
func TestRerunUsesRememberedApproval(t *testing.T) {
	t.Parallel()
	before := ran(forked(), "pull-1", "a=Failed")
	before.Event.Status.Plan.Approval = &v1alpha1.Approval{
		By: "member", SHA: laterSHA, Event: "comment-1", BaseRef: "main", HeadProjectID: 99,
	}
	for name, c := range map[string]struct {
		remember bool
		writers  string
		touched  map[string]string
		runs     int
	}{
		"it is remembered":              {true, "presser member", nil, 1},
		"the setting is off":            {false, "presser member", nil, 0},
		"the approver may not any more": {true, "presser", nil, 0},
		"definitions are others'":       {true, "presser member", map[string]string{sha: ".tekton"}, 0},
	} {
		w := &past{env: &env{writers: c.writers, files: []git.File{pipeline("a")}, touched: c.touched},
			byNumber: map[int64][]history.Record{4: {before}}}
		w.true = described(sha, 99, "author")
		in := pressed(v1alpha1.Rerun{All: true, Pulls: []int64{4}})
		config := *in.Config
		config.RememberApprovals, in.Config = c.remember, &config
		made, err := w.make(t, in)
		if err != nil || len(made.Runs) != c.runs || c.runs > 0 && made.Approval.SHA != laterSHA {
			t.Errorf("%s: %v, %+v, approval %+v, want %d runs", name, err, made.Ending, made.Approval, c.runs)
		}
	}
}
