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

// missedOutages are the durations of outages in which no delivery can be recorded, each in its own
// test: `make missed` has 10 s, 60 s and 10 minutes, `make test` only the first.
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

// recoveredWithin is how long after an outage the undelivered events must have run.
const recoveredWithin = time.Minute

// A14: deliveries come while the API server cannot be reached and are answered 503, or while all
// receivers are down. After the outage each of them runs exactly once, within a minute, without
// help from a user.
func TestUndeliveredEventsRunAfterOutage(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]struct{ begin, end func(env *environment) }{
		"API server away": {(*environment).cutAPIServer, (*environment).restoreAPIServer},
		"receivers away": {
			func(env *environment) {
				for _, p := range env.receivers {
					env.must(p.Kill())
				}
			},
			func(env *environment) {
				for _, p := range env.receivers {
					env.must(p.Restart(env.ctx))
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			onlyInTestAllUnless(t, name == "API server away")
			t.Parallel()
			forEachOutage(t, func(t *testing.T, long time.Duration) {
				env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 2, proxied: true})
				env.forge.SetWebhookURL(env.App.ID, env.receivers[0].URL)
				sha := env.pushAccepted(map[string]string{".tekton/push.yaml": pipeline("before", "push")})
				env.awaitCheck(sha, checkName("before"), "success", soon)

				outage.begin(env)
				commits := env.pushUndelivered(long)
				outage.end(env)
				env.requireRecovered(commits, recoveredWithin)
			})
		})
	}
}

// cutAPIServer cuts our processes off from the API server; restoreAPIServer ends that.
func (env *environment) cutAPIServer() {
	for _, p := range append(env.receivers, env.controllers...) {
		p.Proxy.Cut()
	}
}

func (env *environment) restoreAPIServer() {
	for _, p := range append(env.receivers, env.controllers...) {
		p.Proxy.Restore()
	}
}

// requireRecovered waits until each of the commits has run, and requires that it ran once.
func (env *environment) requireRecovered(commits []string, within time.Duration) {
	env.t.Helper()
	over := time.Now()
	for _, sha := range commits {
		env.awaitCheck(sha, checkName("missed"), "success", within)
	}
	env.t.Logf("%d missed deliveries had run after %v", len(commits), time.Since(over).Round(time.Second))
	env.awaitAllSettled(afterFault)
	ran := env.runsBySHA()
	for _, sha := range commits {
		if ran[sha] != 1 {
			env.t.Errorf("%s has %d PipelineRuns", sha, ran[sha])
		}
	}
	env.requireInvariants()
}

// pushUndelivered pushes to one branch after the other for so long, and requires that no delivery
// is acknowledged. It returns the commits.
func (env *environment) pushUndelivered(long time.Duration) (commits []string) {
	env.t.Helper()
	tick := time.NewTicker(long / 5)
	defer tick.Stop()
	for begin := time.Now(); time.Since(begin) < long; <-tick.C {
		commits = append(commits, env.pushUndeliveredOnce(len(commits)))
	}
	return commits
}

// A14 with a GitLab, which does not redeliver by itself. The role of the token decides whether
// Plumbline can find undelivered webhooks. GitLab redelivers five a minute, so the test has two.
func TestGitLabRedeliversUndelivered(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	forEachOutage(t, func(t *testing.T, long time.Duration) {
		env := newClaimedEnvironment(t,
			setup{service: gitLab, receivers: 1, controllers: 2, proxied: true, gitlab: gitlab.Options{KeepFailingHooks: true}})
		g := env.git.(*onGitLab)
		g.SetHookURL(g.hook, env.receivers[0].URL)
		env.setConfig("webhook-url", env.receivers[0].URL)
		sha := env.pushAccepted(map[string]string{".tekton/push.yaml": pipeline("before", "push")})
		env.awaitCheck(sha, checkName("before"), "success", soon)
		env.awaitCondition(pacv1alpha1.RepositoryWebhook, "Unknown PermissionMissing", "") // the token's role is Developer
		env.updateGitLabSecret(map[string]string{"webhook.secret": hookSecret,
			"provider.token": g.CreateToken(gitlab.NewToken{Project: projectName, Level: gitlab.Maintainer}).Value})
		env.cutAPIServer()
		commits := env.pushUndelivered(long)
		env.restoreAPIServer()
		env.requireRecovered(commits, 2*recoveredWithin)
		env.awaitCondition(pacv1alpha1.RepositoryWebhook, "True Called", "")
	})
}

// pushUndeliveredOnce pushes to the n-th branch, and requires that the delivery is not
// acknowledged.
func (env *environment) pushUndeliveredOnce(n int) (sha string) {
	env.t.Helper()
	branch := fmt.Sprint("missed-", n)
	definition := strings.ReplaceAll(pipeline("missed", "push"), "[main]", "["+branch+"]")
	sha = env.git.commit(branch, forge.Change{Files: map[string]string{".tekton/push.yaml": definition}, Message: branch})
	status, body, _ := env.git.deliver(env.ctx, env.receivers[0].URL, env.git.pushed("refs/heads/"+branch))
	if status/100 == 2 {
		env.t.Fatalf("in the outage a delivery was answered %d %s", status, body)
	}
	return sha
}
