// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// A comment on a GitLab's merge request starts what on-comment asks for, at the head of now, if it is a member's; a
// stranger's, a bot's and a command start nothing and leave nothing on the commit.
func TestGitLabComment(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.keys(map[string]string{"webhook.secret": labSecret, "provider.token": l.token.Value})
	l.gitlab.Commit(labProject, "main", forgeChange(map[string]string{".tekton/deploy.yaml": onComment()}))
	for _, member := range []string{"dev", "rita"} {
		l.gitlab.AddUser(member)
		l.gitlab.SetMember(labProject, member, gitlab.Developer)
	}
	l.gitlab.Commit(labProject, "topic", forgeChange(map[string]string{"a.go": "package a"}))
	iid := l.gitlab.OpenMergeRequest(gitlab.NewMergeRequest{Target: labProject, SourceBranch: "topic", Author: "dev", Title: "A change"})
	says := func(who, what string, want int) {
		t.Helper()
		l.send(l.gitlab.NoteDelivery(l.gitlab.AddNote(labProject, iid, who, what)), want)
	}
	says("stranger", "/deploy staging", http.StatusAccepted)
	says("rita", "/retest", http.StatusOK)
	says("project_1_bot_2", "/deploy staging", http.StatusOK)
	says("rita", "thanks", http.StatusAccepted)
	head := l.gitlab.Commit(labProject, "topic", forgeChange(map[string]string{"a.go": "package b"}))
	says("rita", "/deploy staging", http.StatusAccepted)
	l.statusReaches(head, checkName("deploy"), "success", soon)
	l.settled(soon)
	l.started("deploy")
	for _, s := range l.gitlab.StatusesFor(labProject, head) {
		if s.Name != checkName("deploy") || !strings.HasPrefix(s.Description, "Success (deploy-") {
			t.Errorf("the commit shows %+v", s)
		}
	}
}
