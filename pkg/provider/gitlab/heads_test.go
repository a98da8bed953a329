// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/hooks"
	"github.com/plumbline-ci/plumbline/test/forge"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// The heads are those of the default branch and of the open merge requests that have changed since.
// A merge request's head moves when it is pushed to.
func TestHeads(t *testing.T) {
	h := openHooked(t, forgelab.Maintainer)
	begin := time.Now().Add(-time.Hour)
	main := h.GitLab.Commit(testProject, "main",
		forgelab.Change{Message: "second", Files: map[string]string{"README.md": "more"}})
	topic := h.GitLab.Commit(testProject, "topic",
		forgelab.Change{Message: "a change", Files: map[string]string{"a": "1"}})
	number := h.OpenMergeRequest(forgelab.NewMergeRequest{Target: testProject, SourceBranch: "topic"})
	heads, err := h.log.Heads(t.Context(), begin)
	if err != nil || len(heads) != 2 || heads[0].Pull != 0 || heads[0].Branch != "main" || heads[0].SHA != main ||
		heads[0].At.Before(begin) ||
		heads[1] != (provider.Head{Pull: number, Branch: "topic", SHA: topic}) {
		t.Fatalf("%+v, %v", heads, err)
	}
	opened, err := h.log.Moved(t.Context(), number)
	if err != nil || opened.Before(begin) {
		t.Errorf("moved at %v, %v", opened, err)
	}
	h.GitLab.Commit(testProject, "topic", forgelab.Change{Message: "more", Files: map[string]string{"a": "2"}})
	if moved, err := h.log.Moved(t.Context(), number); err != nil || moved.Before(opened) {
		t.Errorf("pushed to, and moved at %v, %v", moved, err)
	}
	if heads, err := h.log.Heads(t.Context(), time.Now().Add(time.Hour)); err != nil || len(heads) != 1 {
		t.Errorf("of later: %+v, %v", heads, err)
	}
}

// A project without a commit has no heads; one without merge requests has only its branch's. A
// failed read is not an empty list.
func TestHeadsThatCannotBeRead(t *testing.T) {
	h := openHooked(t, forgelab.Maintainer)
	off := h.Inject(forge.Fault{
		Route: forgelab.RouteMergeRequests, Do: forge.Answer(http.StatusForbidden, nil, `{"message":"403 Forbidden"}`),
	})
	if heads, err := h.log.Heads(t.Context(), time.Time{}); err != nil || len(heads) != 1 {
		t.Errorf("without merge requests: %+v, %v", heads, err)
	}
	off.Remove()
	for _, route := range []string{forgelab.RouteProject, forgelab.RouteBranch, forgelab.RouteMergeRequests} {
		down := h.Inject(forge.Fault{Route: route, Do: forge.Answer(http.StatusBadGateway, nil, "")})
		if heads, err := h.log.Heads(t.Context(), time.Time{}); err == nil {
			t.Errorf("with a failing %s: %+v", route, heads)
		}
		down.Remove()
	}
}

// A tenant's own GitLab decides how many merge requests it lists.
func TestHeadsAreBounded(t *testing.T) {
	h := openHooked(t, forgelab.Maintainer)
	for i := range hooks.MaxHeads + 5 {
		branch := fmt.Sprint("topic-", i)
		h.GitLab.Commit(testProject, branch, forgelab.Change{Message: "a change", Files: map[string]string{"a": branch}})
		h.OpenMergeRequest(forgelab.NewMergeRequest{Target: testProject, SourceBranch: branch})
	}
	if heads, err := h.log.Heads(t.Context(), time.Time{}); err != nil || len(heads) != hooks.MaxHeads+1 {
		t.Errorf("%d heads, %v", len(heads), err)
	}
}
