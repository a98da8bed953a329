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

// condition is something that goes wrong, and the alerts whose expressions it moves.
type condition struct {
	sentence string
	setup    setup
	alerts   map[string]movement
	make     func(w *world)
	// prepare is what has to be done before the Repository is claimed; nil is nothing.
	prepare func(w *world)
}

// Every alert of config/monitoring has a condition that is made to happen, which the metrics of its
// expression show; and every metric that alerts and the dashboard read is on the page of a real
// receiver, controller or API server.
func TestAlertsSeeTheirConditions(t *testing.T) {
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
				w := newWorld(t, c.setup)
				if c.prepare != nil {
					c.prepare(w)
				}
				w.claimed()
				w.leads()
				before := w.pages()
				c.make(w)
				for _, alert := range slices.Sorted(maps.Keys(c.alerts)) {
					q := queryOf(t, queries, alert)
					w.eventually(afterFault, alert+" sees it", func() error { return c.alerts[alert](q, before, w.pages()) })
				}
				mu.Lock()
				defer mu.Unlock()
				maps.Copy(served, before)
				maps.Copy(served, w.pages())
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
				t.Errorf("%s reads %s, which nobody serves", q.Title, s.Metric)
			}
		}
	}
}

// firstConditions are those of make test: one for each of what alerts read, which are receiver,
// controller, API server and their absence.
func firstConditions() []string {
	return []string{
		"the API server refuses what a receiver writes", "signatures are wrong and the API server is slow",
		"the Git service fails before anything is planned", "an admission webhook is down", "nothing runs",
	}
}

func when(sentence string, s setup, alerts map[string]movement, make func(*world)) condition {
	return condition{sentence: sentence, setup: s, alerts: alerts, make: make}
}

// poisoned is a controller that panics whenever it plans the event.
func poisoned() condition {
	var delivery delivery
	return condition{
		sentence: "planning an event panics", setup: setup{receivers: 1},
		alerts: map[string]movement{"PlumblineEventPanics": rises, "PlumblineEventParked": rises},
		prepare: func(w *world) {
			var sha string
			sha, delivery = w.push(map[string]string{".tekton/run.yaml": pipeline("poison", "push")})
			w.startPoison("-panic-planning=" + sha)
		},
		make: func(w *world) { w.deliver(delivery, http.StatusAccepted) },
	}
}

func conditions() []condition {
	both := setup{receivers: 1, controllers: 1}
	proxied := setup{receivers: 1, controllers: 1, proxied: true}
	return []condition{
		poisoned(),
		stalled(),
		givenUp(),
		when("a page of tombstones is full", setup{receivers: 1, controllers: 1, config: smallCap()},
			map[string]movement{"PlumblineTombstonesLost": rises}, (*world).losesATombstone),
		when("the API server refuses what a receiver writes", proxied, map[string]movement{
			"PlumblineDeliveriesRefused": rises, "PlumblineReceiverCannotRecord": risesAlone, "PlumblineAPIServerErrors": rises,
		}, (*world).refusesRecords),
		when("signatures are wrong and the API server is slow", proxied, map[string]movement{
			"PlumblineDeliveriesUnauthenticated": rises, "PlumblineAcceptSlow": slow,
		}, (*world).strangersAndSlowness),
		when("the Git service fails before anything is planned", both, map[string]movement{
			"PlumblineEventsNotPlanned": rises, "PlumblineGitServiceErrors": rises,
		}, func(w *world) {
			w.inject(forge.Fault{Match: ofRepository, Do: forge.ServerError502HTML()})
			w.deliverPush("unplanned")
		}),
		when("the Git service takes no reports", both, map[string]movement{"PlumblineReportsOutstanding": rises}, func(w *world) {
			w.inject(forge.Fault{Route: forge.RouteCheckCreate, Do: forge.ServerError502HTML()})
			w.deliverPush("unreported")
		}),
		when("the Git service refuses the App", both, map[string]movement{
			"PlumblineCredentialsRefused": rises, "PlumblineEventsNeedAnOperator": rises,
		}, func(w *world) {
			w.inject(forge.Fault{Route: forge.RouteToken, Do: forge.Unauthorized401()})
			w.deliverPush("refused")
		}),
		when("the Git service's rate limit is used up", both, map[string]movement{"PlumblineRateLimited": rises}, func(w *world) {
			w.inject(forge.Fault{Match: ofRepository, Do: forge.PrimaryRateLimit(time.Now().Add(time.Hour))})
			w.deliverPush("limited")
		}),
		when("the Git service hangs", both, map[string]movement{"PlumblineEventsWaitForATurn": rises}, func(w *world) {
			w.inject(forge.Fault{Do: forge.Hold(w.ctx.Done())})
			for range 8 { // a Git service that nobody knows yet gets four visits at once
				w.deliverPush("waits-in-line")
			}
		}),
		when("a right is missing", proxied, map[string]movement{
			"PlumblinePatchesFailing": rises, "PlumblineRightsMissing": rises,
		}, func(w *world) {
			w.controller().Proxy.Add(cluster.Rule{Match: func(c cluster.Call) bool { return c.Is("patch", "pipelineruns") },
				Do: cluster.Fault(cluster.Forbidden("plumbline-controller", "patch", w.ci))})
			w.deliverPush("unpatched")
		}),
		when("an admission webhook is down", both, map[string]movement{
			"PlumblineEventsNotCreated": rises, "PlumblineAdmissionWebhookUnavailable": rises,
			"PlumblineClusterWebhookFails": rises, "PlumblineClusterWebhookErrors": rises, "PlumblineClusterWebhookFailsOpen": rises,
		}, (*world).webhookIsDown),
		when("what is done cannot be tidied up", proxied, map[string]movement{"PlumblineEventsNotSettled": rises}, func(w *world) {
			w.controller().Proxy.Add(cluster.Rule{Match: func(c cluster.Call) bool { return c.Is("patch", "gitevents") },
				Do: cluster.Fault(cluster.Unavailable())})
			w.deliverPush("unsettled")
		}),
		when("a call hangs and the workers are busy", setup{receivers: 1, controllers: 1, proxied: true, flags: []string{"-workers=1"}},
			map[string]movement{"PlumblineQueueBacklog": rises}, func(w *world) {
				w.controller().Proxy.Add(cluster.Rule{Match: func(c cluster.Call) bool { return nameOf(c) == "update gitevents/status" },
					Do: cluster.Hold(w.ctx.Done())})
				for range 3 {
					w.deliverPush("queued")
				}
			}),
		when("nobody gets a lease", both, map[string]movement{"PlumblineNoLeader": leaderless}, (*world).losesItsLease),
		when("nothing runs", both, map[string]movement{
			"PlumblineReceiverDown": vanishes, "PlumblineControllerDown": vanishes,
		}, func(w *world) {
			for _, p := range []*installation.Process{w.receivers[0], w.controller()} {
				w.must(p.Kill())
			}
		}),
	}
}

// ofRepository matches every call about a repository, so not the one that mints a token.
func ofRepository(r *http.Request) bool { return strings.Contains(r.URL.Path, "/repos/") }

func (w *world) inject(f forge.Fault) { w.forge.Inject(f) }

func (w *world) deliverPush(name string) {
	w.t.Helper()
	_, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline(name, "push")})
	w.deliver(delivery, http.StatusAccepted)
}

func (w *world) refusesRecords() {
	w.receivers[0].Proxy.Add(cluster.Rule{Match: func(c cluster.Call) bool { return c.Is("create", "gitevents") },
		Do: cluster.Fault(cluster.Unavailable())})
	_, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("lost", "push")})
	w.deliver(delivery, http.StatusServiceUnavailable)
}

// strangersAndSlowness makes one delivery fail its verification and another take longer than the
// alert allows.
func (w *world) strangersAndSlowness() {
	_, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("slow", "push")})
	_, body := partsOf(delivery)
	forged := w.git.signed(delivery, body, "another secret")
	if a := w.sent(w.receivers[0], forged); a.status != http.StatusUnauthorized {
		w.t.Fatalf("a forged delivery is answered %v", a)
	}
	w.receivers[0].Proxy.Add(cluster.Rule{Match: creates("gitevents"), Do: cluster.Delay(5 * time.Second)}) // the alert's are 4 s
	w.deliver(delivery, http.StatusAccepted)
}

// webhookIsDown puts two webhooks in front of the world's PipelineRuns, at an address where nothing
// listens: one has to be asked, the other only if it answers.
func (w *world) webhookIsDown() {
	port, err := shared.cluster.FreePort()
	w.must(err)
	url := fmt.Sprintf("https://127.0.0.1:%d/", port)
	none, timeout := admissionv1.SideEffectClassNone, int32(5)
	webhook := func(name string, policy admissionv1.FailurePolicyType) admissionv1.ValidatingWebhook {
		return admissionv1.ValidatingWebhook{
			Name: name + "." + w.policyName(), FailurePolicy: &policy, SideEffects: &none, TimeoutSeconds: &timeout,
			AdmissionReviewVersions: []string{"v1"}, ClientConfig: admissionv1.WebhookClientConfig{URL: &url},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.ci}},
			Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{APIGroups: []string{"tekton.dev"}, APIVersions: []string{"*"}, Resources: []string{"pipelineruns"}}}},
		}
	}
	configurations := w.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	created, err := configurations.Create(w.ctx, &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.policyName()},
		Webhooks:   []admissionv1.ValidatingWebhook{webhook("must", admissionv1.Fail), webhook("may", admissionv1.Ignore)},
	}, metav1.CreateOptions{})
	w.must(err)
	w.t.Cleanup(func() {
		if err := configurations.Delete(w.ctx, created.Name, metav1.DeleteOptions{}); err != nil {
			w.t.Errorf("removing the webhooks: %v", err)
		}
	})
	w.eventually(soon, "the API server asks the webhook", func() error {
		_, err := w.Tekton.TektonV1().PipelineRuns(w.ci).Create(w.ctx, sample("probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "connection refused") {
			return fmt.Errorf("it says: %w", err)
		}
		return nil
	})
	w.deliverPush("uncreated")
}

// losesItsLease replaces the controller by one that may write no lease.
func (w *world) losesItsLease() {
	w.kill(w.controller())
	p, err := w.Controller(w.ctx, true)
	w.must(err)
	p.Proxy.Add(cluster.Rule{Match: func(c cluster.Call) bool { return c.Resource == "leases" && c.Verb != "get" },
		Do: cluster.Fault(cluster.Unavailable())})
	w.start(p)
	w.controllers = []*installation.Process{p}
}
