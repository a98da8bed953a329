// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

const (
	labProject = "acme/team/app"
	labSecret  = "secret-of-the-gitlab-hook"
)

// lab is a world whose Repository is a project on a GitLab.
type lab struct {
	*world
	gitlab *gitlab.GitLab
	token  gitlab.Token
}

// newLab starts one receiver and one controller, and creates the Repository without the Secret it names.
func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{world: newWorld(t, setup{receivers: 1}), gitlab: gitlab.New(gitlab.Options{})}
	l.startController(false, "-operator-retry="+operatorRetry.String())
	l.must(l.gitlab.Start())
	t.Cleanup(func() { _ = l.gitlab.Close() })
	project := l.gitlab.CreateProject(labProject, gitlab.ProjectOptions{Unprotected: true})
	l.token = l.gitlab.CreateToken(gitlab.NewToken{Project: labProject})
	l.gitlab.AddHook(labProject, l.receivers[0].URL, labSecret)
	_, err := l.Plumbline.PipelinesascodeV1alpha1().Repositories(l.ci).Create(l.ctx, &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Name: "lab"},
		Spec: pacv1alpha1.RepositorySpec{URL: project.WebURL, GitProvider: &pacv1alpha1.GitProvider{
			Type: "gitlab", URL: l.gitlab.URL(), Secret: &pacv1alpha1.Secret{Name: "lab"}, WebhookSecret: &pacv1alpha1.Secret{Name: "lab"},
		}},
	}, metav1.CreateOptions{})
	l.must(err)
	url, err := v1alpha1.CanonicalURL(project.WebURL)
	l.must(err)
	l.eventually(soon, "the Repository owns its URL", func() error {
		_, err := l.Plumbline.PlumblineV1alpha1().RepositoryClaims(l.Namespace).Get(l.ctx, v1alpha1.ClaimName(url), metav1.GetOptions{})
		return err
	})
	return l
}

// keys stores the credentials that the Repository names.
func (l *lab) keys(data map[string]string) {
	l.t.Helper()
	_ = l.Kube.CoreV1().Secrets(l.ci).Delete(l.ctx, "lab", metav1.DeleteOptions{})
	_, err := l.Kube.CoreV1().Secrets(l.ci).Create(l.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "lab"}, StringData: data}, metav1.CreateOptions{})
	l.must(err)
}

func (l *lab) send(d gitlab.Delivery, want int) {
	l.t.Helper()
	got, body, err := l.gitlab.Deliver(l.ctx, l.receivers[0].URL, d)
	if err != nil || got != want {
		l.t.Fatalf("delivery answered %d %s %v, want %d", got, body, err, want)
	}
}

// statusReaches waits until the newest status of that name is the state.
func (l *lab) statusReaches(sha, name, want string, limit time.Duration) gitlab.CommitStatus {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.ctx, limit)
	defer cancel()
	err := l.gitlab.WaitFor(ctx, func(s *gitlab.State) bool {
		status, found := s.Current(labProject, sha, name)
		return found && status.State == want
	})
	status, _ := l.gitlab.Current(labProject, sha, name)
	if err != nil {
		l.t.Fatalf("status %q is not %s within %v but %+v", name, want, limit, status)
	}
	return status
}

// A push and a merge request on a GitLab become commit statuses that tell the truth. Without the hook's secret nobody is
// believed; without the API's token the event waits, and goes on when it is there.
func TestGitLab(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	sha := l.gitlab.Commit(labProject, "main", forgeChange(map[string]string{
		".tekton/a.yaml": pipeline("good", "push"), ".tekton/b.yaml": pipeline("bad", "push", fails),
		".tekton/c.yaml": strings.Replace(pipeline("request", "pull_request"), "{{ revision }}", "{{ body.object_attributes.iid }} {{ event_type }}", 1),
	}))
	push := l.gitlab.PushDelivery(gitlab.PushEvent{Project: labProject, Ref: "refs/heads/main"})
	l.send(push, http.StatusServiceUnavailable) // the secret that would tell who this is cannot be read
	l.keys(map[string]string{"webhook.secret": labSecret})
	wrong := l.gitlab.PushDelivery(gitlab.PushEvent{Project: labProject, Ref: "refs/heads/main"})
	wrong.SetToken("somebody else's")
	l.send(wrong, http.StatusUnauthorized)
	l.send(push, http.StatusAccepted)
	l.eventually(soon, "the event waits for its token", func() error { return l.waitsFor("CredentialsMissing") })
	l.keys(map[string]string{"webhook.secret": labSecret, "provider.token": l.token.Value})
	l.statusReaches(sha, checkName("good"), "success", afterFault)
	l.statusReaches(sha, checkName("bad"), "failed", soon)
	for _, write := range l.gitlab.WritesForStatus(labProject, sha, checkName("good")) {
		if write.State == "failed" {
			t.Errorf("write %+v says failed", write)
		}
	}
	l.send(push, http.StatusAccepted)

	head := l.gitlab.Commit(labProject, "topic", forgeChange(map[string]string{"a.go": "package a"}))
	l.gitlab.AddUser("dev")
	l.gitlab.SetMember(labProject, "dev", gitlab.Developer)
	iid := l.gitlab.OpenMergeRequest(gitlab.NewMergeRequest{Target: labProject, SourceBranch: "topic", Author: "dev", Title: "A change"})
	l.send(l.gitlab.MergeRequestDelivery(gitlab.MergeRequestEvent{Project: labProject, IID: iid, Action: "open"}), http.StatusAccepted)
	l.statusReaches(head, checkName("request"), "success", soon)
	l.settled(soon)
	l.started("bad", "good", "request")
	for _, run := range l.runs() {
		if got := run.Spec.Params[0].Value.StringVal; strings.HasPrefix(run.Name, "request") && got != "1 Merge Request" {
			t.Errorf("revision is %q", got)
		}
	}
	l.toldNothingOf(l.token.Value)
	l.toldNothingOf(labSecret)
}

func forgeChange(files map[string]string) gitlab.Change {
	return gitlab.Change{Files: files, Message: "a change"}
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
