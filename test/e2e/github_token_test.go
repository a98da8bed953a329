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
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/test/forge"
)

const (
	tokenUser   = "ci-bot"
	tokenSecret = "github"
)

// tokenEnv is an environment whose Repository on GitHub names a token and a webhook secret. The
// GitHub App is installed on it, too.
type tokenEnv struct {
	*environment
	token string
}

func newTokenEnv(t *testing.T) *tokenEnv {
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1, private: true})
	env.forge.AddHook(repoName, hookSecret)
	env.forge.SetCollaborator(repoName, "member", "write")
	w := &tokenEnv{env, env.forge.CreateToken(forge.NewToken{User: tokenUser, Repo: repoName})}
	env.must(errOf(env.Kube.CoreV1().Secrets(env.ci).Create(env.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: tokenSecret},
		StringData: map[string]string{"provider.token": w.token, "webhook.secret": hookSecret},
	}, metav1.CreateOptions{})))
	env.patchSpec(`{"git_provider":{"type":"github","secret":{"name":"github"},"webhook_secret":{"name":"github"}}}`)
	w.awaitCondition(pacv1alpha1.RepositoryURL, "True Owned", "deliveries of the GitHub App for it start nothing")
	return w
}

// arrives delivers what the repository's webhook calls for. The receivers may learn of a changed
// Repository and its secret a moment later.
func (w *tokenEnv) arrives(d forge.Delivery) {
	w.t.Helper()
	w.eventually(afterFault, "the delivery is recorded", func() error {
		code, body, err := w.forge.Deliver(w.ctx, w.receivers[0].URL, d)
		if err != nil || code != http.StatusAccepted {
			return fmt.Errorf("%d %s: %w", code, body, err)
		}
		return nil
	})
}

// awaitStatus waits until GitHub shows a status of a context with the state, and returns it.
func (w *tokenEnv) awaitStatus(sha, named, state string) (found forge.CommitStatus) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, soon)
	defer cancel()
	err := w.forge.WaitFor(ctx, func(s *forge.State) bool {
		found, _ = s.CurrentStatus(repoName, sha, named)
		return found.State == state
	})
	if err != nil {
		w.t.Fatalf("%s on %s is %+v, want %s: %v\n%+v", named, sha, found, state, err, w.forge.StatusesFor(repoName, sha))
	}
	return found
}

func (w *tokenEnv) opens(number int) forge.Delivery {
	return w.forge.PullRequestDelivery(forge.PullEvent{
		Repo: repoName, Number: number, Action: "opened", AppID: forge.OfHook,
	})
}

func (w *tokenEnv) says(number int, user, body string) forge.Delivery {
	return w.forge.CommentDelivery(forge.CommentEvent{
		Repo: repoName, ID: w.forge.Comment(repoName, number, user, body), AppID: forge.OfHook,
	})
}

// results are the comments that show results on a pull request.
func (w *tokenEnv) results(number int) (all []forge.Comment) {
	for _, c := range w.forge.Comments(repoName, number) {
		if c.Author == tokenUser && strings.HasPrefix(c.Body, "<!-- plumbline result ") {
			all = append(all, c)
		}
	}
	return all
}

// A Repository with a token and a webhook, without an App: pushes and pull requests run, commands
// start runs again, an untrusted user's pull request waits for approval, and the token's end is
// announced. Results are commit statuses, and one comment for each pipeline.
func TestGitHubWithToken(t *testing.T) {
	t.Parallel()
	w := newTokenEnv(t)
	sha := w.git.commit("main", forge.Change{Files: map[string]string{
		".tekton/push.yaml": pipeline("push", "push"), ".tekton/pr.yaml": pipeline("pr", "pull_request"),
	}})
	push := forge.PushEvent{Repo: repoName, Ref: "refs/heads/main", AppID: forge.OfHook}
	w.arrives(w.forge.PushDelivery(push))
	pushed := w.awaitStatus(sha, checkName("push"), "success")
	// The App is called for the same push. It starts nothing.
	push.AppID = 0
	w.deliver(w.forge.PushDelivery(push), http.StatusOK)
	w.awaitAllSettled(soon)
	w.requireRunCount(1)
	if pushed.Creator != tokenUser || !strings.Contains(pushed.Description, w.runs()[0].Name) {
		t.Errorf("the status is %+v, want one by %s that names the run", pushed, tokenUser)
	}

	topic := w.git.commit("topic", forge.Change{Files: map[string]string{"README": "topic"}})
	number := w.git.open("", "topic", "writer")
	w.arrives(w.opens(number))
	w.awaitStatus(topic, checkName("pr"), "success")
	w.awaitAllSettled(soon)
	w.requireResult(number, topic, 0)
	w.arrives(w.says(number, "member", "/test pr"))
	w.eventually(soon, "the command starts the pipeline again", func() error {
		if got := w.runsBySHA()[topic]; got != 2 {
			return fmt.Errorf("%d runs", got)
		}
		return nil
	})
	w.awaitAllSettled(soon)
	w.awaitStatus(topic, checkName("pr"), "success")
	w.requireResult(number, topic, 1)
	w.commentsOnFailures()
	w.approvesFork()
	w.announcesExpiry()
	for _, made := range w.forge.Writes() {
		if made.Route == forge.RouteCheckCreate {
			t.Errorf("a check run was created: %+v", made)
		}
	}
}

// requireResult requires one comment about the result, with the tasks of the run and so many edits.
func (w *tokenEnv) requireResult(number int, sha string, edits int) {
	w.t.Helper()
	got := w.results(number)
	if len(got) != 1 || got[0].Edits != edits || !strings.Contains(got[0].Body, sha) ||
		!strings.Contains(got[0].Body, "PipelineRun") {
		w.t.Errorf("the comments about results are %+v, want one about %s with %d edits", got, sha, edits)
	}
}

// commentsOnFailures: with on_failure, only a pipeline that fails has a comment, and no list.
func (w *tokenEnv) commentsOnFailures() {
	w.t.Helper()
	w.changeSettings(`{"github":{"comment_strategy":"on_failure"}}`)
	sha := w.git.commit("breaks", forge.Change{Files: map[string]string{
		".tekton/bad.yaml": pipeline("bad", "pull_request", fails),
	}})
	number := w.git.open("", "breaks", "writer")
	w.arrives(w.opens(number))
	w.awaitStatus(sha, checkName("bad"), "failure")
	w.awaitStatus(sha, checkName("pr"), "success")
	w.awaitAllSettled(soon)
	w.requireResult(number, sha, 0)
	if all := w.ownComments(number, status.FailuresMark); len(all) != 0 {
		w.t.Errorf("the failures are listed, too: %q", all)
	}
}

// approvesFork: an untrusted user's pull request from a fork waits for a user with write access.
func (w *tokenEnv) approvesFork() {
	w.t.Helper()
	number, sha := w.openForkPull("stranger")
	w.arrives(w.opens(number))
	if asks := w.awaitStatus(sha, application, "pending"); !strings.Contains(asks.Description, "Pending approval") {
		w.t.Errorf("it says %q", asks.Description)
	}
	w.arrives(w.says(number, "stranger", "/ok-to-test"))
	w.arrives(w.says(number, "member", "/ok-to-test "+sha))
	w.awaitStatus(sha, checkName("pr"), "success")
	w.awaitStatus(sha, application, "success")
	w.awaitAllSettled(soon)
	if got := w.runsBySHA()[sha]; got != 1 {
		w.t.Errorf("%d runs of the approved commit, want 1", got)
	}
}

// announcesExpiry: the Repository says that the token expires, and that it has expired.
func (w *tokenEnv) announcesExpiry() {
	w.t.Helper()
	w.forge.ExpireToken(w.token, time.Now().Add(48*time.Hour))
	sha := w.git.commit("main", forge.Change{Files: map[string]string{"README": "one more"}})
	again := forge.PushEvent{Repo: repoName, Ref: "refs/heads/main", AppID: forge.OfHook}
	w.arrives(w.forge.PushDelivery(again))
	w.awaitStatus(sha, checkName("push"), "success")
	named := w.ci + "/" + tokenSecret
	w.awaitCondition(pacv1alpha1.RepositoryToken, "False TokenExpires", named)
	w.awaitRepositoryEvent("TokenExpires", named)
	w.awaitAllSettled(soon)
	w.forge.ExpireToken(w.token, time.Now().Add(-time.Minute))
	w.git.commit("main", forge.Change{Files: map[string]string{"README": "too late"}})
	w.arrives(w.forge.PushDelivery(again))
	w.awaitCondition(pacv1alpha1.RepositoryCredentials, "False "+fault.ReasonCredentialsRefused, named)
}
