// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/forge"
)

// A push and a merge request on a GitLab become commit statuses that tell the truth. Without the hook's secret nobody is
// believed; without the API's token the event waits, and goes on when it is there.
func TestGitLab(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{service: gitLab, receivers: 1, controllers: 1, flags: []string{"-operator-retry=" + operatorRetry.String()}})
	w.claimed()
	g := w.git.(*onGitLab)
	w.stores(nil)
	w.knows("", "")
	sha, push := w.push(map[string]string{
		".tekton/a.yaml": pipeline("good", "push"), ".tekton/b.yaml": pipeline("bad", "push", fails),
		".tekton/c.yaml": strings.Replace(pipeline("request", "pull_request"), "{{ revision }}", "{{ body.object_attributes.iid }} {{ event_type }}", 1),
	})
	w.deliver(push, http.StatusServiceUnavailable) // the secret that would tell who this is cannot be read
	w.stores(map[string]string{"webhook.secret": hookSecret})
	w.knows(hookSecret, "")
	_, body := partsOf(push)
	w.deliver(w.git.signed(w.again(), body, "somebody else's"), http.StatusUnauthorized)
	w.deliver(push, http.StatusAccepted)
	w.eventually(soon, "the event waits for its token", func() error { return w.waitsFor("CredentialsMissing") })
	w.stores(map[string]string{"webhook.secret": hookSecret, "provider.token": g.token.Value})
	w.checkReaches(sha, checkName("good"), "success", afterFault)
	w.checkReaches(sha, checkName("bad"), "failure", soon)
	w.deliver(push, http.StatusAccepted)

	head := w.git.commit("topic", forge.Change{Files: map[string]string{"a.go": "package a"}})
	w.git.grant("dev", "write")
	w.deliver(w.opened(w.git.open("", "topic", "dev")), http.StatusAccepted)
	w.checkReaches(head, checkName("request"), "success", soon)
	w.settled(soon)
	w.started("bad", "good", "request")
	for _, run := range w.runs() {
		if got := run.Spec.Params[0].Value.StringVal; strings.HasPrefix(run.Name, "request") && got != "1 Merge Request" {
			t.Errorf("revision is %q", got)
		}
	}
	w.toldNothingOf(g.token.Value)
	w.toldNothingOf(hookSecret)
	w.invariants()
}

// A comment on a GitLab's merge request starts what on-comment asks for, at the head of now, if it is a member's; a
// stranger's, a bot's and a command start nothing and leave nothing on the commit.
func TestGitLabComment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{service: gitLab, receivers: 1, controllers: 1})
	w.claimed()
	g := w.git.(*onGitLab)
	w.git.commit("main", forge.Change{Files: map[string]string{".tekton/deploy.yaml": onComment()}})
	w.git.grant("dev", "write")
	w.git.grant("rita", "write")
	w.git.commit("topic", forge.Change{Files: map[string]string{"a.go": "package a"}})
	iid := int64(w.git.open("", "topic", "dev"))
	says := func(who, what string, want int) {
		t.Helper()
		w.deliver(g.NoteDelivery(g.AddNote(projectName, iid, who, what)), want)
	}
	says("stranger", "/deploy staging", http.StatusAccepted)
	says("rita", "/retest", http.StatusAccepted) // of what has on-comment alone
	says("project_1_bot_2", "/deploy staging", http.StatusOK)
	says("rita", "thanks", http.StatusAccepted)
	head := w.git.commit("topic", forge.Change{Files: map[string]string{"a.go": "package b"}})
	says("rita", "/deploy staging", http.StatusAccepted)
	w.checkReaches(head, checkName("deploy-"), "success", soon)
	w.settled(soon)
	w.started("deploy-")
	for _, check := range w.git.checks(head) {
		if check.Name != checkName("deploy-") || !strings.HasPrefix(check.Title, "Success (deploy-") {
			t.Errorf("the commit shows %+v", check)
		}
	}
	w.invariants()
}

// stores puts the data into the Secret that the Repository on a GitLab names; nil takes the Secret away.
func (w *world) stores(data map[string]string) {
	w.t.Helper()
	namespace, name, _ := w.git.secret(w)
	secrets := w.Kube.CoreV1().Secrets(namespace)
	_ = secrets.Delete(w.ctx, name, metav1.DeleteOptions{})
	if data != nil {
		_, err := secrets.Create(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: data}, metav1.CreateOptions{})
		w.must(err)
	}
}

// waitsFor returns nil when an event waits for the reason.
func (w *world) waitsFor(reason string) error {
	for _, event := range w.events() {
		for _, wait := range event.Status.Waits {
			if wait.Reason == reason {
				return nil
			}
		}
	}
	return fmt.Errorf("no event waits for %s: %+v", reason, w.events())
}
