// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// condition is a problem, and the alerts whose expressions it changes.
type condition struct {
	sentence string
	setup    setup
	alerts   map[string]movement
	make     func(env *environment)
	// prepare runs before the Repository is claimed; it may be nil.
	prepare func(env *environment)
}

// Every alert of config/monitoring has a condition that the test causes, and the metrics of the
// alert's expression show it. Every metric that an alert or the dashboard reads is on the page of
// a real receiver, controller or API server.
func TestAlertsDetectTheirConditions(t *testing.T) {
	t.Parallel()
	queries := monitoring(t)
	covered := map[string]bool{}
	var mu sync.Mutex
	served, ran := page{}, 0
	t.Run("conditions", func(t *testing.T) { // ends when its parallel subtests have
		for _, c := range conditions() {
			for alert := range c.alerts {
				covered[alert] = true
			}
			t.Run(c.sentence, func(t *testing.T) {
				onlyInTestAllUnless(t, slices.Contains(firstConditions(), c.sentence))
				t.Parallel()
				env := newEnvironment(t, c.setup)
				if c.prepare != nil {
					c.prepare(env)
				}
				env.awaitClaimed()
				env.awaitLeases()
				before := env.metricsPages()
				c.make(env)
				for _, alert := range slices.Sorted(maps.Keys(c.alerts)) {
					q := queryOf(t, queries, alert)
					env.eventually(afterFault, alert+" sees it",
						func() error { return c.alerts[alert](q, before, env.metricsPages()) })
				}
				mu.Lock()
				defer mu.Unlock()
				maps.Copy(served, before)
				maps.Copy(served, env.metricsPages())
				ran++
			})
		}
	})
	for _, q := range queries {
		if q.Alert != "" && !covered[q.Alert] {
			t.Errorf("no condition moves %s", q.Alert)
		}
		for _, s := range q.Selectors {
			if ran == len(conditions()) && len(served.all(s.Metric)) == 0 {
				t.Errorf("%s reads %s, which no process serves", q.Title, s.Metric)
			}
		}
	}
}

// firstConditions are those that make test causes: one for each source that alerts read (receiver,
// controller, API server), and one for a missing source.
func firstConditions() []string {
	return []string{
		"the API server refuses what a receiver writes", "signatures are wrong and the API server is slow",
		"the Git service fails before anything is planned", "an admission webhook is down", "nothing runs",
	}
}

func when(sentence string, s setup, alerts map[string]movement, make func(*environment)) condition {
	return condition{sentence: sentence, setup: s, alerts: alerts, make: make}
}

// panickingController is a controller that panics whenever it plans the event.
func panickingController() condition {
	var delivery delivery
	return condition{
		sentence: "planning an event panics", setup: setup{receivers: 1},
		alerts: map[string]movement{"PlumblineEventPanics": rises, "PlumblineEventParked": rises},
		prepare: func(env *environment) {
			var sha string
			sha, delivery = env.push(map[string]string{".tekton/run.yaml": pipeline("poison", "push")})
			env.startPanickingController("-panic-planning=" + sha)
		},
		make: func(env *environment) { env.deliver(delivery, http.StatusAccepted) },
	}
}

func conditions() []condition {
	both := setup{receivers: 1, controllers: 1}
	proxied := setup{receivers: 1, controllers: 1, proxied: true}
	return []condition{
		panickingController(),
		stalledSweep(),
		givenUpDelivery(),
		when("a page of tombstones is full", setup{receivers: 1, controllers: 1, config: smallCap()},
			map[string]movement{"PlumblineTombstonesLost": rises}, (*environment).loseTombstone),
		when("the API server refuses what a receiver writes", proxied, map[string]movement{
			"PlumblineDeliveriesRefused": rises, "PlumblineReceiverCannotRecord": risesAlone, "PlumblineAPIServerErrors": rises,
		}, (*environment).refuseRecords),
		when("signatures are wrong and the API server is slow", proxied, map[string]movement{
			"PlumblineDeliveriesUnauthenticated": rises, "PlumblineAcceptSlow": slow,
		}, (*environment).causeFailedAndSlowDelivery),
		when("the Git service fails before anything is planned", both, map[string]movement{
			"PlumblineEventsNotPlanned": rises, "PlumblineGitServiceErrors": rises,
		}, func(env *environment) {
			env.inject(forge.Fault{Match: ofRepository, Do: forge.ServerError502HTML()})
			env.deliverPush("unplanned")
		}),
		when("the Git service takes no reports", both, map[string]movement{"PlumblineReportsOutstanding": rises},
			func(env *environment) {
				env.inject(forge.Fault{Route: forge.RouteCheckCreate, Do: forge.ServerError502HTML()})
				env.deliverPush("unreported")
			}),
		when("the Git service refuses the App", both, map[string]movement{
			"PlumblineCredentialsRefused": rises, "PlumblineEventsNeedAnOperator": rises,
		}, func(env *environment) {
			env.inject(forge.Fault{Route: forge.RouteToken, Do: forge.Unauthorized401()})
			env.deliverPush("refused")
		}),
		when("the Git service's rate limit is used up", both, map[string]movement{"PlumblineRateLimited": rises},
			func(env *environment) {
				env.inject(forge.Fault{Match: ofRepository, Do: forge.PrimaryRateLimit(time.Now().Add(time.Hour))})
				env.deliverPush("limited")
			}),
		when("the Git service hangs", both, map[string]movement{"PlumblineEventsWaitForATurn": rises},
			func(env *environment) {
				env.inject(forge.Fault{Do: forge.Hold(env.ctx.Done())})
				for range 8 { // a Git service without known state gets four slots at once
					env.deliverPush("waits-in-line")
				}
			}),
		when("a right is missing", proxied, map[string]movement{
			"PlumblinePatchesFailing": rises, "PlumblineRightsMissing": rises,
		}, func(env *environment) {
			env.controller().Proxy.Add(cluster.Rule{Match: func(c cluster.Call) bool { return c.Is("patch", "pipelineruns") },
				Do: cluster.Fault(cluster.Forbidden("plumbline-controller", "patch", env.ci))})
			env.deliverPush("unpatched")
		}),
		when("an admission webhook is down", both, map[string]movement{
			"PlumblineEventsNotCreated": rises, "PlumblineAdmissionWebhookUnavailable": rises,
			"PlumblineClusterWebhookFails": rises, "PlumblineClusterWebhookErrors": rises,
			"PlumblineClusterWebhookFailsOpen": rises,
		}, (*environment).addUnreachableWebhooks),
		when("what is done cannot be tidied up", proxied, map[string]movement{"PlumblineEventsNotSettled": rises},
			func(env *environment) {
				env.controller().Proxy.Add(cluster.Rule{Match: func(c cluster.Call) bool { return c.Is("patch", "gitevents") },
					Do: cluster.Fault(cluster.Unavailable())})
				env.deliverPush("unsettled")
			}),
		when("a call hangs and the workers are busy",
			setup{receivers: 1, controllers: 1, proxied: true, flags: []string{"-workers=1"}},
			map[string]movement{"PlumblineQueueBacklog": rises}, func(env *environment) {
				env.controller().Proxy.Add(cluster.Rule{Match: func(c cluster.Call) bool {
					return nameOf(c) == "update gitevents/status"
				},
					Do: cluster.Hold(env.ctx.Done())})
				for range 3 {
					env.deliverPush("queued")
				}
			}),
		when("nobody gets a lease", both, map[string]movement{"PlumblineNoLeader": leaderless}, (*environment).loseLease),
		when("nothing runs", both, map[string]movement{
			"PlumblineReceiverDown": vanishes, "PlumblineControllerDown": vanishes,
		}, func(env *environment) {
			for _, p := range []*installation.Process{env.receivers[0], env.controller()} {
				env.must(p.Kill())
			}
		}),
	}
}

// ofRepository matches every call about a repository. The call that mints a token is none.
func ofRepository(r *http.Request) bool { return strings.Contains(r.URL.Path, "/repos/") }

func (env *environment) inject(f forge.Fault) { env.forge.Inject(f) }

func (env *environment) deliverPush(name string) {
	env.t.Helper()
	env.pushAccepted(map[string]string{".tekton/run.yaml": pipeline(name, "push")})
}

func (env *environment) refuseRecords() {
	env.receivers[0].Proxy.Add(cluster.Rule{Match: func(c cluster.Call) bool { return c.Is("create", "gitevents") },
		Do: cluster.Fault(cluster.Unavailable())})
	_, delivery := env.push(map[string]string{".tekton/run.yaml": pipeline("lost", "push")})
	env.deliver(delivery, http.StatusServiceUnavailable)
}

// causeFailedAndSlowDelivery sends a delivery that fails verification and one that takes longer
// than the alert allows.
func (env *environment) causeFailedAndSlowDelivery() {
	_, delivery := env.push(map[string]string{".tekton/run.yaml": pipeline("slow", "push")})
	_, body := partsOf(delivery)
	forged := env.git.signed(delivery, body, "another secret")
	if a := env.mustSend(env.receivers[0], forged); a.status != http.StatusUnauthorized {
		env.t.Fatalf("a forged delivery is answered %v", a)
	}
	// the alert's limit is 4 s
	env.receivers[0].Proxy.Add(cluster.Rule{Match: creates("gitevents"), Do: cluster.Delay(5 * time.Second)})
	env.deliver(delivery, http.StatusAccepted)
}

// addUnreachableWebhooks registers two webhooks for the environment's PipelineRuns at an address
// where nothing listens. The API server must ask the first; it ignores a failure of the second.
func (env *environment) addUnreachableWebhooks() {
	port, err := shared.cluster.FreePort()
	env.must(err)
	url := fmt.Sprintf("https://127.0.0.1:%d/", port)
	none, timeout := admissionv1.SideEffectClassNone, int32(5)
	webhook := func(name string, policy admissionv1.FailurePolicyType) admissionv1.ValidatingWebhook {
		return admissionv1.ValidatingWebhook{
			Name: name + "." + env.policyName(), FailurePolicy: &policy, SideEffects: &none, TimeoutSeconds: &timeout,
			AdmissionReviewVersions: []string{"v1"}, ClientConfig: admissionv1.WebhookClientConfig{URL: &url},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": env.ci}},
			Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{
					APIGroups: []string{"tekton.dev"}, APIVersions: []string{"*"}, Resources: []string{"pipelineruns"},
				}}},
		}
	}
	configurations := env.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	created, err := configurations.Create(env.ctx, &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: env.policyName()},
		Webhooks:   []admissionv1.ValidatingWebhook{webhook("must", admissionv1.Fail), webhook("may", admissionv1.Ignore)},
	}, metav1.CreateOptions{})
	env.must(err)
	env.t.Cleanup(func() {
		if err := configurations.Delete(env.ctx, created.Name, metav1.DeleteOptions{}); err != nil {
			env.t.Errorf("removing the webhooks: %v", err)
		}
	})
	env.eventually(soon, "the API server asks the webhook", func() error {
		_, err := env.Tekton.TektonV1().PipelineRuns(env.ci).Create(env.ctx, sample("probe"),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "connection refused") {
			return fmt.Errorf("it says: %w", err)
		}
		return nil
	})
	env.deliverPush("uncreated")
}

// loseLease replaces the controller by one that may not write a lease.
func (env *environment) loseLease() {
	env.kill(env.controller())
	p, err := env.Controller(env.ctx, true)
	env.must(err)
	p.Proxy.Add(cluster.Rule{Match: func(c cluster.Call) bool { return c.Resource == "leases" && c.Verb != "get" },
		Do: cluster.Fault(cluster.Unavailable())})
	env.startProcess(p)
	env.controllers = []*installation.Process{p}
}
