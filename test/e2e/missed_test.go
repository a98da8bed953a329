// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// missedOutage is how long nobody can record a delivery: 10 s here, 60 s and 10 minutes in the campaign.
const missedOutage = 10 * time.Second

// recoveredWithin is how long it takes after an outage until what was missed runs.
const recoveredWithin = time.Minute

// A14, A15: deliveries come while the API server cannot be reached, and are answered 503; or while all receivers are away, and
// nobody answers. When that is over each of them runs exactly once, within a minute, and no person has done anything.
func TestA14A15WhatWasMissedRunsAfterTheOutage(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]struct{ begin, end func(w *world) }{
		"API server away": {
			func(w *world) {
				for _, p := range append(w.receivers, w.controllers...) {
					p.Proxy.Cut()
				}
			},
			func(w *world) {
				for _, p := range append(w.receivers, w.controllers...) {
					p.Proxy.Restore()
				}
			},
		},
		"receivers away": {
			func(w *world) {
				for _, p := range w.receivers {
					w.must(p.Kill())
				}
			},
			func(w *world) {
				for _, p := range w.receivers {
					w.must(p.Restart(w.ctx))
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{receivers: 1, controllers: 2, proxied: true})
			w.claimed()
			w.forge.SetWebhookURL(w.App.ID, w.receivers[0].URL)
			sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("before", "push")})
			w.deliver(delivery, 202)
			w.checkReaches(sha, checkName("before"), "success", soon)

			outage.begin(w)
			commits := w.missedFor(missedOutage)
			outage.end(w)
			over := time.Now()

			for _, sha := range commits {
				w.checkReaches(sha, checkName("missed"), "success", recoveredWithin-time.Since(over))
			}
			t.Logf("%d missed deliveries had run after %v", len(commits), time.Since(over).Round(time.Second))
			w.settled(afterFault)
			ran := w.runsBySHA()
			for _, sha := range commits {
				if ran[sha] != 1 {
					t.Errorf("%s has %d PipelineRuns", sha, ran[sha])
				}
			}
			w.invariants()
		})
	}
}

// missedFor pushes to one branch after the other for so long, and requires that no delivery is acknowledged. It returns the
// commits.
func (w *world) missedFor(long time.Duration) (commits []string) {
	w.t.Helper()
	tick := time.NewTicker(long / 5)
	defer tick.Stop()
	for begin := time.Now(); time.Since(begin) < long; <-tick.C {
		branch := fmt.Sprint("missed-", len(commits))
		definition := strings.ReplaceAll(pipeline("missed", "push"), "[main]", "["+branch+"]")
		commits = append(commits, w.git.commit(branch, forge.Change{Files: map[string]string{".tekton/push.yaml": definition}, Message: branch}))
		status, body, _ := w.git.deliver(w.ctx, w.receivers[0].URL, w.git.pushed("refs/heads/"+branch))
		if status/100 == 2 {
			w.t.Fatalf("in the outage a delivery was answered %d %s", status, body)
		}
	}
	return commits
}

// A14 with a GitLab, which is told of no App and sends nothing again by itself: the token's role decides whether what was missed can be found.
func TestA14AGitLabSendsAgainWhatWasMissed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{service: gitLab, receivers: 1, controllers: 2, proxied: true, gitlab: gitlab.Options{KeepFailingHooks: true}})
	w.claimed()
	g := w.git.(*onGitLab)
	g.SetHookURL(g.hook, w.receivers[0].URL)
	w.configure("webhook-url", w.receivers[0].URL)
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("before", "push")})
	w.deliver(delivery, 202)
	w.checkReaches(sha, checkName("before"), "success", soon)
	w.hookCondition("Unknown PermissionMissing") // the token's role is Developer
	w.stores(map[string]string{"webhook.secret": hookSecret, "provider.token": g.CreateToken(gitlab.NewToken{Project: projectName, Level: gitlab.Maintainer}).Value})

	for _, p := range append(w.receivers, w.controllers...) {
		p.Proxy.Cut()
	}
	commits := w.missedFor(missedOutage)
	for _, p := range append(w.receivers, w.controllers...) {
		p.Proxy.Restore()
	}
	over := time.Now()
	for _, sha := range commits {
		w.checkReaches(sha, checkName("missed"), "success", 2*recoveredWithin-time.Since(over)) // GitLab sends five a minute
	}
	t.Logf("%d missed deliveries had run after %v", len(commits), time.Since(over).Round(time.Second))
	w.settled(afterFault)
	ran := w.runsBySHA()
	for _, sha := range commits {
		if ran[sha] != 1 {
			t.Errorf("%s has %d PipelineRuns", sha, ran[sha])
		}
	}
	w.hookCondition("True Called")
	w.invariants()
}

// hookCondition waits until the Repository's condition Webhook has a status and reason. What GitLab refused is looked at again when the
// Repository changes.
func (w *world) hookCondition(want string) {
	w.t.Helper()
	w.eventually(afterFault, "the condition Webhook is "+want, func() error {
		repository, err := w.Plumbline.PipelinesascodeV1alpha1().Repositories(w.ci).Get(w.ctx, "app", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if is := repository.Status.GetCondition(pacv1alpha1.RepositoryWebhook); is == nil || fmt.Sprint(is.Status, " ", is.Reason) != want {
			return fmt.Errorf("it is %v", is)
		}
		return nil
	})
}
