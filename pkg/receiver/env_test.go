// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	plumblinefake "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/receiver"
	"github.com/plumbline-ci/plumbline/pkg/receiver/recorder"
	"github.com/plumbline-ci/plumbline/pkg/receiver/secrets"
)

const (
	systemNamespace = "plumbline"
	webhookSecret   = "hunter2-the-webhook-secret"
	repositoryURL   = "https://git.example/acme/app"
	sha             = "0123456789012345678901234567890123456789"
	// retention is how long the record of a delivery is kept.
	retention = 4 * 24 * time.Hour
	// bodyMarker is in every body, and must never be logged or sent in an answer.
	bodyMarker = "body-marker-that-nobody-logs"
)

// env is an API server, and the log and metrics of several receivers.
type env struct {
	t         *testing.T
	client    *plumblinefake.Clientset
	copied    map[string]map[string]string // data of the Secrets that controllers have copied, by namespace/name
	refresher *secrets.Refresher
	clock     *clocktesting.FakePassiveClock
	ahead     time.Duration // of the API server's clock
	baseURL   string
	barred    string        // the namespace that cannot claim any URL
	budget    *quota.Ledger // shared by them
	limits    quota.Limits
	cached    receiver.View // empty by default: every look-up is live
	// pac is where Pipelines-as-Code listens, empty if it does not run, and unserved the namespace
	// that it serves.
	pac, unserved string

	// undelivered counts the calls of Options.Undelivered, unavailable the answers 503.
	undelivered, unavailable atomic.Int64

	mu      sync.Mutex
	seen    bytes.Buffer // all log lines and answers
	reader  *metric.ManualReader
	metrics *receiver.Metrics
}

func newEnv(t *testing.T) *env {
	e := &env{
		t: t, baseURL: "https://git.example", reader: metric.NewManualReader(),
		clock:  clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)),
		client: plumblinefake.NewSimpleClientset(claim(repositoryURL, "ci", "app"), repository("ci", "app", repositoryURL)),
		copied: map[string]map[string]string{
			systemNamespace + "/plumbline-github-app": {"webhook.secret": webhookSecret + "\n"},
		},
	}
	e.client.PrependReactor("create", "gitevents", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if event, is := action.(clienttesting.CreateAction).GetObject().(*v1alpha1.GitEvent); is {
			event.CreationTimestamp = metav1.NewTime(e.clock.Now().Add(e.ahead).Truncate(time.Second))
		}
		return false, nil, nil
	})
	e.limits = quota.Limits{Events: 1000, Bytes: 1 << 30}
	e.budget = quota.New(func() quota.Limits { return e.limits }, e.clock, nil)
	e.refresher = secrets.NewRefresher(nil, e.clock, e.logger()) // it does not run: nothing is requested
	e.cached = receiver.LiveView(plumblinefake.NewSimpleClientset(), systemNamespace, 0)
	metrics, err := receiver.NewMetrics(metric.NewMeterProvider(metric.WithReader(e.reader)))
	if err != nil {
		t.Fatal(err)
	}
	e.metrics = metrics
	t.Cleanup(func() {
		if said, want := e.undelivered.Load(), e.unavailable.Load(); said < want {
			t.Errorf("%d deliveries were answered 503, and %d reported as undelivered", want, said)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if all := e.seen.String(); strings.Contains(all, webhookSecret) || strings.Contains(all, bodyMarker) {
			t.Errorf("a log line or an answer contains the secret or the body:\n%s", all)
		}
	})
	return e
}

func claim(url, namespace, name string) *v1alpha1.RepositoryClaim {
	return &v1alpha1.RepositoryClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: v1alpha1.ClaimName(url)},
		Spec:       v1alpha1.RepositoryClaimSpec{URL: url, Repository: v1alpha1.ClaimOwner{Namespace: namespace, Name: name}},
	}
}

func repository(namespace, name, url string) *pacv1alpha1.Repository {
	return &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid-1"},
		Spec:       pacv1alpha1.RepositorySpec{URL: url},
	}
}

// Write and Sync make env a zap sink.
func (e *env) Write(line []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen.Write(line)
}

func (e *env) Sync() error { return nil }

func (e *env) log() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen.String()
}

func (e *env) logger() *zap.SugaredLogger {
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), e, zap.DebugLevel)).Sugar()
}

func (e *env) recorder() *recorder.Recorder {
	return &recorder.Recorder{
		Namespace: systemNamespace, Clock: e.clock, Quota: e.budget, Retention: func() time.Duration { return retention },
		Events:     e.client.PlumblineV1alpha1().GitEvents(systemNamespace),
		Payloads:   e.client.PlumblineV1alpha1().EventPayloads(systemNamespace),
		Tombstones: e.client.PlumblineV1alpha1().TombstonePages(systemNamespace),
	}
}

// replica returns one more receiver.
func (e *env) replica() *receiver.Handler {
	return receiver.NewHandler(receiver.Options{
		Providers: []provider.Provider{{Name: "test", Webhook: service{}}},
		BaseURL:   func(string) string { return e.baseURL },
		Secret:    secrets.AppSecret{Copies: e.copies(), Namespace: systemNamespace, Name: "plumbline-github-app"},
		Lookup: receiver.Lookup{
			Cached: e.cached, Live: e.live(), Unverified: e.live(),
			Neighbours:  receiver.NeighboursIn(e.served()),
			CannotClaim: func(_, namespace string) bool { return namespace == e.barred },
		},
		Recorder: e.recorder(), Metrics: e.metrics, Logger: e.logger(), Clock: e.clock,
		PipelinesAsCode: e.pipelinesAsCode(),
		Undelivered:     func() { e.undelivered.Add(1) },
	}).AnswerUnverifiedAfter(time.Millisecond)
}

// repositories returns a cache of all Repositories that exist now.
func (e *env) repositories() cache.Indexer {
	e.t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, receiver.RepositoryIndexers())
	for _, obj := range e.all(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), "Repository") {
		if err := indexer.Add(obj); err != nil {
			e.t.Fatal(err)
		}
	}
	return indexer
}

// all returns all objects of a kind without a call of the client.
func (e *env) all(resource schema.GroupVersionResource, kind string) []runtime.Object {
	e.t.Helper()
	list, err := e.client.Tracker().List(resource, resource.GroupVersion().WithKind(kind), "")
	if err != nil {
		e.t.Fatal(err)
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		e.t.Fatal(err)
	}
	return objects
}

// send has a handler answer a request, and logs the answer: no secret may be in it.
func (e *env) send(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	if answer.Code == http.StatusServiceUnavailable {
		e.unavailable.Add(1)
	}
	_, _ = fmt.Fprintf(e, "answer: %v %s\n", answer.Header(), answer.Body.String()) // a buffer
	return answer
}

// expect sends a delivery to another replica and checks the answer.
func (e *env) expect(status int, d delivery) *httptest.ResponseRecorder {
	e.t.Helper()
	answer := e.send(e.replica(), d.request())
	e.check(status, answer)
	return answer
}

func (e *env) check(status int, answer *httptest.ResponseRecorder) {
	e.t.Helper()
	var body struct {
		Status  int
		Message string
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil || body.Message == "" || body.Status != answer.Code {
		e.t.Errorf("body %q (%v), want JSON with status %d and a message", answer.Body.String(), err, answer.Code)
	}
	if got := answer.Result().Header.Get("Content-Type"); got != "application/json" {
		e.t.Errorf("Content-Type %q", got)
	}
	if has := answer.Result().Header.Get("Retry-After") != ""; has != (status == http.StatusServiceUnavailable) {
		e.t.Errorf("Retry-After set: %v for status %d", has, status)
	}
	if answer.Code != status {
		e.t.Errorf("answered %d %s, want %d", answer.Code, body.Message, status)
	}
}

func (e *env) events() []v1alpha1.GitEvent {
	e.t.Helper()
	list, err := e.client.PlumblineV1alpha1().GitEvents(systemNamespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	return list.Items
}

// wantEvents checks how many GitEvents exist.
func (e *env) wantEvents(n int) []v1alpha1.GitEvent {
	e.t.Helper()
	events := e.events()
	if len(events) != n {
		e.t.Fatalf("%d GitEvents, want %d", len(events), n)
	}
	return events
}

// fail makes the API server answer err to a verb on a resource.
func (e *env) fail(verb, resource string, err error) {
	e.client.PrependReactor(verb, resource,
		func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

// counted returns how many deliveries were counted with an outcome and a reason.
func (e *env) counted(outcome, reason string) int64 {
	return e.sum("plumbline.receiver.deliveries", map[string]string{"outcome": outcome, "reason": reason})
}

// sum adds up the points of a counter that have these attributes.
func (e *env) sum(name string, want map[string]string) int64 {
	e.t.Helper()
	var data metricdata.ResourceMetrics
	if err := e.reader.Collect(context.Background(), &data); err != nil {
		e.t.Fatal(err)
	}
	var n int64
	for _, m := range data.ScopeMetrics[0].Metrics {
		sum, ok := m.Data.(metricdata.Sum[int64])
		if !ok || m.Name != name {
			continue
		}
		for _, p := range sum.DataPoints {
			fits := true
			for key, value := range want {
				got, _ := p.Attributes.Value(attribute.Key(key))
				fits = fits && got.AsString() == value
			}
			if fits {
				n += p.Value
			}
		}
	}
	return n
}
