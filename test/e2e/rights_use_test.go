// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
	"github.com/plumbline-ci/plumbline/test/installation"
)

func controllerMay(verb, resource string) installation.Right {
	return installation.Right{Account: "plumbline-controller", Verb: verb, Resource: resource}
}

// No right is missing or unused. An installation starts without any right and gets each one after
// a call was refused for lack of it. It then processes a push to its end, with exactly the rights
// of config/. No message in between is wrong.
func TestEachRightIsNeeded(t *testing.T) {
	t.Parallel()
	secret, create := controllerMay("create", "/secrets"), controllerMay("create", "tekton.dev/pipelineruns")
	l := newRightsProbe(t, secret, create)
	receiver, err := l.Receiver(l.ctx, false)
	l.must(err)
	controller, err := l.Controller(l.ctx, false, "-operator-retry="+operatorRetry.String(),
		"-late-reports="+lateReports.String())
	l.must(err)
	l.receivers, l.controllers = append(l.receivers, l.keepRunning(receiver)),
		append(l.controllers, l.keepRunning(controller))
	l.awaitStart()

	sha, delivery := l.push(map[string]string{".tekton/push.yaml": withLargePlan(
		strings.Replace(pipeline("climber", "push", held), "{{ revision }}", "{{ revision }} {{ word }}", 1))})
	delivery = l.largeDelivery(delivery)
	for _, what := range []string{"a delivery", "the same delivery again"} {
		l.accepted(what, func() (int, string) { return l.post(receiver, delivery) }, http.StatusAccepted)
	}

	l.awaitRefusal(secret)
	if runs := l.runs(); len(runs) != 0 {
		t.Errorf("%d PipelineRuns, and their secret could not be made", len(runs))
	}
	l.allow(secret)
	l.awaitRefusal(create)
	l.eventually(soon, "the check says that it waits for a right", func() error {
		for _, write := range l.forge.WritesForCheck(repoName, sha, checkName("climber")) {
			if write.CheckStatus == "queued" && strings.Contains(fmt.Sprint(write.Body), "pipelineruns") {
				return nil
			}
		}
		return fmt.Errorf("it says %+v", l.forge.WritesForCheck(repoName, sha, ""))
	})
	l.allow(create)

	l.awaitCheck(sha, checkName("climber"), "in_progress", soon)
	event := l.awaitRunsCreated(sha)
	l.releaseRuns(event)
	l.awaitCheck(sha, checkName("climber"), "success", afterFault)
	l.awaitAllSettled(afterFault)
	l.requirePatched(event.Status.Runs[0].Name, l.awaitCheck(sha, checkName("climber"), "success", soon))
	l.requireNoFailure(sha)
	l.useRemainingRights()
	l.requireComplete(unreached())
}

// unreached are the rights that this test does not need: those that no scenario needs, those for
// the eviction of settled events, which needs more events than this installation has, those for
// renaming a Repository, and those for the logs of failed steps, which need Tekton.
// TestRedeliveryOfEvictedEventIsRecognized, the alerts, TestDeletedRepositoryReservesURLForADay and
// TestLogsNeedTheirRights use them.
func unreached() map[installation.Right]string {
	rights := unused()
	rights[controllerMay("delete", "plumbline.dev/gitevents")] = "settled events are evicted above the cap"
	rights[controllerMay("get", "/pods")] = "a pod is read if its node may have been shut down"
	rights[controllerMay("list", "/pods")] = "pods are listed of runs whose steps failed"
	rights[controllerMay("get", "/pods/log")] = "logs are read of steps that failed"
	rights[controllerMay("update", "plumbline.dev/repositoryclaims")] = "a claim moves when its Repository is renamed"
	for _, verb := range []string{"get", "create", "update", "delete"} {
		rights[controllerMay(verb, "plumbline.dev/tombstonepages")] = "tombstones are those of evicted events"
	}
	return rights
}

// awaitStart waits until the receiver is ready and the Repository, whose push needs a param of a
// Secret, owns its URL.
func (l *rightsProbe) awaitStart() {
	l.t.Helper()
	l.must(errOf(l.Kube.CoreV1().Secrets(l.ci).Create(l.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "words"}, StringData: map[string]string{"one": "word"},
	}, metav1.CreateOptions{})))
	l.change("app", `{"spec":{"params":[{"name":"word","secret_ref":{"name":"words","key":"one"}}]}}`)
	l.eventually(afterFault, "the receiver is ready", func() error {
		if status := l.getStatus(l.receivers[0], "/ready"); status != http.StatusOK {
			return fmt.Errorf("it answers %d", status)
		}
		return nil
	})
	l.awaitURL("app", l.repo.HTMLURL)
}

func (l *rightsProbe) change(repository, patch string) {
	l.t.Helper()
	l.must(errOf(l.Plumbline.PipelinesascodeV1alpha1().Repositories(l.ci).Patch(l.ctx, repository, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{})))
}

// awaitURL waits until the Repository owns its URL. It changes the Repository meanwhile, because
// the controller would otherwise retry only after five minutes.
func (l *rightsProbe) awaitURL(repository, rawURL string) {
	l.t.Helper()
	url, err := v1alpha1.CanonicalURL(rawURL)
	l.must(err)
	n := 0
	l.eventually(afterFault, "Repository "+repository+" owns its URL", func() error {
		n++
		if n%10 == 0 {
			l.change(repository, fmt.Sprintf(`{"metadata":{"annotations":{"again":"%d"}}}`, n))
		}
		_, err := l.Plumbline.PlumblineV1alpha1().RepositoryClaims(l.Namespace).Get(l.ctx, v1alpha1.ClaimName(url),
			metav1.GetOptions{})
		return err
	})
}

func (l *rightsProbe) accepted(what string, post func() (int, string), want int) {
	l.t.Helper()
	l.eventually(soon, what+" is taken", func() error {
		if status, body := post(); status != want {
			return fmt.Errorf("answered %d %s, want %d", status, body, want)
		}
		return nil
	})
}

// refused returns nil when a call was refused for lack of the right.
func (l *rightsProbe) refused(right installation.Right) error {
	r := l.rightOf(right)
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.refused == "" {
		return errMissing
	}
	return nil
}

// useRemainingRights does what needs rights that a push on GitHub does not need: a run that is
// pruned, one that a user deletes, a delivery for an unclaimed repository, one of a GitLab, and a
// deleted Repository.
func (l *rightsProbe) useRemainingRights() {
	l.t.Helper()
	receiver, prune := l.receivers[0], controllerMay("delete", "tekton.dev/pipelineruns")
	sha, pruned := l.push(map[string]string{".tekton/push.yaml": pipeline("pruned", "push", keepRuns("0"))})
	l.deliver(pruned, http.StatusAccepted)
	l.awaitCheck(sha, checkName("pruned"), "success", afterFault)
	l.awaitRefusal(prune)
	l.awaitAllSettled(afterFault)
	sha, goner := l.push(map[string]string{".tekton/push.yaml": pipeline("goner", "push", held)})
	l.deliver(goner, http.StatusAccepted)
	run := l.awaitRunsCreated(sha).Status.Runs[0].Name
	l.must(l.Tekton.TektonV1().PipelineRuns(l.ci).Delete(l.ctx, run, metav1.DeleteOptions{}))
	l.awaitCheck(sha, checkName("goner"), "cancelled", afterFault)

	elsewhere := l.git.(*onGitHub).unclaimedRepository()
	l.accepted("a delivery that nobody wants", func() (int, string) { return l.post(receiver, elsewhere) }, http.StatusOK)

	lab := &onGitLab{GitLab: gitlab.New(gitlab.Options{})}
	l.must(lab.setUp())
	l.t.Cleanup(func() { _ = lab.Close() })
	repositories := l.Plumbline.PipelinesascodeV1alpha1().Repositories(l.ci)
	l.must(errOf(repositories.Create(l.ctx, &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Name: "lab"}, Spec: lab.connect(l.environment),
	}, metav1.CreateOptions{})))
	l.awaitURL("lab", lab.page())
	lab.commit("main", forge.Change{Files: map[string]string{"a.go": "package a"}})
	push := lab.pushed("refs/heads/main")
	l.accepted("a delivery of GitLab", func() (int, string) {
		// Sent by the test: GitLab stops after the fourth refusal, and several rights are refused
		// more than once.
		request, err := push.Request(l.ctx, receiver.URL)
		l.must(err)
		a, err := exchange(request)
		l.must(err)
		return a.status, a.body
	}, http.StatusAccepted)
	l.awaitAllSettled(afterFault)
	l.must(repositories.Delete(l.ctx, "lab", metav1.DeleteOptions{}))
	l.awaitRefusal(controllerMay("update", "plumbline.dev/repositoryclaims/status"))
	l.kill(l.controllers[0]) // it would read again only after five minutes, and a preflight reads once
	l.eventually(soon, "the claim is released", func() error {
		url, err := v1alpha1.CanonicalURL(lab.page())
		if err != nil {
			return err
		}
		claim, err := l.Plumbline.PlumblineV1alpha1().RepositoryClaims(l.Namespace).Get(l.ctx, v1alpha1.ClaimName(url),
			metav1.GetOptions{})
		if err == nil && claim.Status.ReleasedAt == nil {
			err = errMissing
		}
		return err
	})
}
