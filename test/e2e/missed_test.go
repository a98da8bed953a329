// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// missedOutages is for how long nobody can record a delivery, each in a test of its own: `make
// missed` has 10 s, 60 s and 10 minutes, `make test` the first alone.
var missedOutages = flag.String("missed", "10s", "how long the outages of A14 are, with commas between")

// forEachOutage runs a test for each of missedOutages.
func forEachOutage(t *testing.T, test func(t *testing.T, long time.Duration)) {
	t.Helper()
	for text := range strings.SplitSeq(*missedOutages, ",") {
		long, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("-missed: %v", err)
		}
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			test(t, long)
		})
	}
}

// recoveredWithin is how long it takes after an outage until what was missed runs.
const recoveredWithin = time.Minute

// A14: deliveries come while the API server cannot be reached, and are answered 503; or while all
// receivers are away, and nobody answers. When that is over each of them runs exactly once, within
// a minute, and no person has done anything.
func TestA14WhatWasMissedRunsAfterTheOutage(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]struct{ begin, end func(w *world) }{
		"API server away": {(*world).cutAll, (*world).restoreAll},
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
			onlyInTestAllUnless(t, name == "API server away")
			t.Parallel()
			forEachOutage(t, func(t *testing.T, long time.Duration) {
				w := newWorld(t, setup{receivers: 1, controllers: 2, proxied: true})
				w.claimed()
				w.forge.SetWebhookURL(w.App.ID, w.receivers[0].URL)
				sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("before", "push")})
				w.deliver(delivery, 202)
				w.checkReaches(sha, checkName("before"), "success", soon)

				outage.begin(w)
				commits := w.missedFor(long)
				outage.end(w)
				w.recovers(commits, recoveredWithin)
			})
		})
	}
}

// cutAll keeps our processes from the API server, restoreAll ends that.
func (w *world) cutAll() {
	for _, p := range append(w.receivers, w.controllers...) {
		p.Proxy.Cut()
	}
}

func (w *world) restoreAll() {
	for _, p := range append(w.receivers, w.controllers...) {
		p.Proxy.Restore()
	}
}

// recovers waits until each of the commits has run, and requires that it has once.
func (w *world) recovers(commits []string, within time.Duration) {
	w.t.Helper()
	over := time.Now()
	for _, sha := range commits {
		w.checkReaches(sha, checkName("missed"), "success", within)
	}
	w.t.Logf("%d missed deliveries had run after %v", len(commits), time.Since(over).Round(time.Second))
	w.settled(afterFault)
	ran := w.runsBySHA()
	for _, sha := range commits {
		if ran[sha] != 1 {
			w.t.Errorf("%s has %d PipelineRuns", sha, ran[sha])
		}
	}
	w.invariants()
}

// missedFor pushes to one branch after the other for so long, and requires that no delivery is
// acknowledged. It returns the commits.
func (w *world) missedFor(long time.Duration) (commits []string) {
	w.t.Helper()
	tick := time.NewTicker(long / 5)
	defer tick.Stop()
	for begin := time.Now(); time.Since(begin) < long; <-tick.C {
		commits = append(commits, w.missedPush(len(commits)))
	}
	return commits
}

// A14 with a GitLab, which is told of no App and sends nothing again by itself: the token's role
// decides whether what was missed can be found. It sends five a minute, so it has two.
func TestA14AGitLabSendsAgainWhatWasMissed(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	forEachOutage(t, func(t *testing.T, long time.Duration) {
		w := newWorld(t, setup{service: gitLab, receivers: 1, controllers: 2, proxied: true, gitlab: gitlab.Options{KeepFailingHooks: true}})
		w.claimed()
		g := w.git.(*onGitLab)
		g.SetHookURL(g.hook, w.receivers[0].URL)
		w.configure("webhook-url", w.receivers[0].URL)
		sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("before", "push")})
		w.deliver(delivery, 202)
		w.checkReaches(sha, checkName("before"), "success", soon)
		w.conditioned(pacv1alpha1.RepositoryWebhook, "Unknown PermissionMissing", "") // the token's role is Developer
		w.stores(map[string]string{"webhook.secret": hookSecret, "provider.token": g.CreateToken(gitlab.NewToken{Project: projectName, Level: gitlab.Maintainer}).Value})
		w.cutAll()
		commits := w.missedFor(long)
		w.restoreAll()
		w.recovers(commits, 2*recoveredWithin)
		w.conditioned(pacv1alpha1.RepositoryWebhook, "True Called", "")
	})
}

// missedPush pushes to the n-th branch, and requires that the delivery is not acknowledged.
func (w *world) missedPush(n int) (sha string) {
	w.t.Helper()
	branch := fmt.Sprint("missed-", n)
	definition := strings.ReplaceAll(pipeline("missed", "push"), "[main]", "["+branch+"]")
	sha = w.git.commit(branch, forge.Change{Files: map[string]string{".tekton/push.yaml": definition}, Message: branch})
	status, body, _ := w.git.deliver(w.ctx, w.receivers[0].URL, w.git.pushed("refs/heads/"+branch))
	if status/100 == 2 {
		w.t.Fatalf("in the outage a delivery was answered %d %s", status, body)
	}
	return sha
}
