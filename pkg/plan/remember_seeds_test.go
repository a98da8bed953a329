// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// S22 over 1,000 seeds with remember-ok-to-test. A commit of an untrusted user runs only if it is
// approved, or if all of this holds: the author of the pull request pushed it to the branch of the
// approval, the definitions have not changed since the approved commit, and the approver still has
// write access. In every second seed deliveries are not signed and contain false values, also about
// who pushed.
func TestRememberedApprovalsInAnyOrder(t *testing.T) {
	t.Parallel()
	approvals, memories, declined := 0, 0, 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(22, seed))
		all := story(r, 9)
		circumstances := seeds{remember: true, fired: 80 + r.IntN(400), touched: map[string]string{}}
		for _, h := range all {
			if touches := []string{"", "", "", "", ".tekton", "OWNERS"}[r.IntN(6)]; circumstances.touched[h.sha] == "" {
				circumstances.touched[h.sha] = touches
			}
		}
		if seed%2 == 1 {
			circumstances.forging = r
		}
		planned := slices.Clone(all)
		slices.SortStableFunc(planned, func(a, b *happening) int { return a.planned - b.planned })
		for _, h := range planned {
			h.event = h.recorded()
			made := planAt(t, h, all, circumstances)
			h.event.Status = v1alpha1.GitEventStatus{Disposition: made.Disposition,
				Plan: &v1alpha1.Plan{HeadSHA: made.HeadSHA, Approval: made.Approval, Reason: made.Reason}}
			switch why := circumstances.unfounded(h, all, made); {
			case len(made.Runs) == 0:
				declined++
			case why != "":
				t.Errorf("seed %d: %s of %d by %s runs %s, and %s: %+v", seed, h.kind, h.at, h.by, made.HeadSHA, why, made.Approval)
			case made.Approval.SHA != "":
				memories++
			default:
				approvals++
			}
		}
	}
	if approvals < 100 || memories < 100 || declined < 200 {
		t.Errorf("%d ran by approvals, %d by memories and %d not: the seeds show too little", approvals, memories, declined)
	}
}

// unfounded returns why a commit must not run, "" if it may.
func (s seeds) unfounded(h *happening, all []*happening, made *plan.Plan) string {
	given := made.Approval
	if len(made.Runs) == 0 {
		return ""
	}
	if given == nil {
		return "nobody has approved anything"
	}
	approved := given.Of(made.HeadSHA)
	comment := slices.IndexFunc(all, func(c *happening) bool { return c.event != nil && c.event.Name == given.Event })
	switch {
	case comment < 0 || !strings.HasPrefix(all[comment].kind, "/") || all[comment].planned > h.planned ||
		!wasHead(all, approved, all[comment].at):
		return "no command can have been about " + approved
	case s.fired <= all[comment].planned:
		return "whoever has approved it could not any more"
	case approved == made.HeadSHA:
		return ""
	case s.fired <= h.planned:
		return "whoever has approved the other one may not any more"
	case s.touched[made.HeadSHA] != s.touched[approved]:
		return "it has other definitions than " + approved
	case h.base != "main":
		return "it goes to another branch"
	case !slices.ContainsFunc(all, func(p *happening) bool {
		return p.kind == "push" && p.sha == made.HeadSHA && p.by == "author" && p.at <= h.planned
	}):
		return "its author has not pushed it"
	}
	return ""
}
