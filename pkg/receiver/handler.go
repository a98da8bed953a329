// SPDX-License-Identifier: Apache-2.0

// Package receiver is the HTTP edge: it verifies a delivery of a Git service, makes it a GitEvent
// and answers when that is durable. It holds nothing in memory that correctness needs, so any
// number of replicas may run.
package receiver

import (
	"context"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/receiver/connlimit"
	"github.com/plumbline-ci/plumbline/pkg/receiver/fairness"
	"github.com/plumbline-ci/plumbline/pkg/receiver/secrets"
)

type secretReader interface {
	Read(ctx context.Context) (secrets.Secret, error)
}

type serviceFinder interface {
	// GlobalRepository returns the one whose settings complete all others, nil when there is none.
	GlobalRepository(ctx context.Context) (*pacv1alpha1.Repository, error)
	Of(ctx context.Context, repository *pacv1alpha1.Repository) (pacv1alpha1.Service, error)
	Secret(ctx context.Context, key pacv1alpha1.SecretKey) (secrets.Secret, error)
	// Copy is as Secret, and neither waits nor asks for a copy.
	Copy(key pacv1alpha1.SecretKey) (secrets.Secret, error)
}

type recorder interface {
	// Affords returns a Throttled fault if a push's body of that size would not be recorded for a
	// namespace now, or another event's.
	Affords(namespace string, push bool, size int) error
	Record(ctx context.Context, spec *v1alpha1.GitEventSpec, body []byte) (name string, created bool, err error)
}

// Options are what a Handler needs; all are required.
type Options struct {
	// Providers are asked in order which one a delivery is for.
	Providers []provider.Provider
	// BaseURL returns the configured web URL of a provider's service, empty while it is not known.
	BaseURL func(provider string) string
	// Secret is the App's webhook secret.
	Secret secretReader
	// Services are those of Repositories that no App serves.
	Services serviceFinder
	Lookup   Lookup
	Recorder recorder
	Metrics  *Metrics
	// Missed is called when a delivery was not recorded that has to come again. It does not block.
	Missed func()
	Logger *zap.SugaredLogger
	Clock  clock.PassiveClock
	// Wait is how long each call to the API server may take.
	Wait APIWait
}

// Handler answers deliveries.
type Handler struct {
	Options

	inFlight, large slots
	places          fairness.Places
	lanes           fairness.Lanes
	groups          groups
	// strangers are the deliveries that nobody vouches for.
	strangers flowcontrol.PassiveRateLimiter
	// late is unverifiedAnswer.
	late time.Duration
}

// NewHandler returns a handler with its own limits of concurrency.
func NewHandler(o Options) *Handler {
	for _, p := range o.Providers {
		o.Metrics.begin(p.Name)
	}
	return &Handler{
		Options: o, inFlight: make(slots, fairness.MaxInFlight), large: make(slots, maxLargeBodies),
		strangers: flowcontrol.NewTokenBucketPassiveRateLimiter(UnverifiedQPS, UnverifiedBurst), late: unverifiedAnswer,
	}
}

// delivery is what is known of a request so far.
type delivery struct {
	header http.Header
	// arrived is when the whole body was there: what comes before that is up to the sender.
	arrived  time.Time
	body     []byte
	provider *provider.Provider
	origin   provider.Origin
	// previousKey is where the previous webhook secret is, if the delivery was verified with that
	// one.
	previousKey string
	// admitted reports whether it was taken off the budget of strangers.
	admitted bool
	// verified reports whether the sender knows a webhook secret.
	verified bool
	// release gives back the place that the body has; only the first call does.
	release func()
}

func (d *delivery) providerName() string {
	if d.provider == nil {
		return "none"
	}
	return d.provider.Name
}

// ServeHTTP answers one delivery and logs and counts it once.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := h.Clock.Now()
	d := &delivery{header: r.Header, arrived: start}
	// Neither a sender that hangs up nor a shutdown stops a record half way.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), h.Wait.budget(workBudget))
	defer cancel()
	ctx, end := traced(ctx)
	a := h.guarded(ctx, d, w, r)
	if a.late {
		d.body = nil // not while nothing but time passes
		h.wait(r, d.arrived)
	}
	if !d.verified { // only who knows a secret keeps a connection
		w.Header().Set("Connection", "close")
	}
	a.write(w)
	if a.outcome == outcomeUnavailable {
		h.Missed()
	}
	end(d, a)
	took := h.Clock.Since(start)
	h.Metrics.observe(ctx, d, a, took)
	h.log(d, a, took)
}

// guarded turns a panic into 503: one poisonous delivery is no reason to drop a connection without
// an answer.
func (h *Handler) guarded(ctx context.Context, d *delivery, w http.ResponseWriter, r *http.Request) (a answer) {
	defer func() {
		if recover() == nil { // the value may quote the payload, so only the place is logged
			return
		}
		h.Logger.Errorw("handling a delivery panicked", "provider", d.providerName(), "stack", string(debug.Stack()))
		a = unavailable("the delivery could not be handled", fault.Transientf("Panic", "panic"))
	}()
	return h.receive(ctx, d, w, r)
}

// wait ends so long after the body has arrived that nothing can be told by it, or when there is
// nobody to be answered. The body and its slot are given back by now.
func (h *Handler) wait(r *http.Request, arrived time.Time) {
	timer := time.NewTimer(h.late - h.Clock.Since(arrived))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-connlimit.Of(r.Context()).Distrusted():
	case <-r.Context().Done():
	}
}

// receive claims, reads and answers a request.
func (h *Handler) receive(ctx context.Context, d *delivery, w http.ResponseWriter, r *http.Request) answer {
	if r.Method != http.MethodPost {
		return rejected(http.StatusMethodNotAllowed, "MethodNotAllowed", "deliveries are sent by POST")
	}
	if d.provider = h.claimant(r.Header); d.provider == nil {
		return rejected(
			http.StatusBadRequest,
			"UnknownService",
			"no Git service recognises this request: its headers are not those of a webhook delivery",
		)
	}
	body, release, err := h.read(ctx, w, r)
	d.release = sync.OnceFunc(release)
	defer d.release()
	if err != nil {
		return unread(err)
	}
	d.body, d.arrived = body, h.Clock.Now()
	if fairness.Worked(d.body, func() { d.origin, err = d.provider.Webhook.Peek(d.header, d.body) }); err != nil {
		return undecoded(err)
	}
	switch {
	case !d.origin.App && d.provider.BaseURL != nil:
		return h.acceptOwn(ctx, d)
	case !d.origin.App:
		return ignored(
			"NotTheApp",
			"only deliveries of the GitHub App are served: install the App on the repository and remove this webhook",
		)
	}
	return h.accept(ctx, d)
}

func (h *Handler) claimant(header http.Header) *provider.Provider {
	for i := range h.Providers {
		if h.Providers[i].Webhook.Claims(header) {
			return &h.Providers[i]
		}
	}
	return nil
}

// accept verifies a delivery of the App, finds whose it is and records it. It decodes before the
// lookup: most deliveries of an App are events that are never acted on, and those must not cost a
// read of the API server each.
func (h *Handler) accept(ctx context.Context, d *delivery) answer {
	secret, err := h.Secret.Read(ctx)
	if err != nil {
		return unavailable("the webhook secret cannot be read at the moment", err)
	}
	if err := d.verify(secret, true); err != nil {
		return unverified(err, func() answer {
			return rejected(http.StatusUnauthorized, "Unauthenticated", "the signature is missing or wrong")
		})
	}
	d.verified = true
	canonical, bad := v1alpha1.CanonicalURL(d.origin.URL)
	if refusal := h.beyondRate(ctx, d, canonical); refusal != nil {
		return *refusal
	}
	spec, err := d.decode()
	if err != nil {
		return undecoded(err)
	}
	if bad != nil {
		return rejected(http.StatusBadRequest, "BadRepositoryURL", "the repository's URL: "+bad.Error())
	}
	if refusal := otherHost(d, h.BaseURL(d.provider.Name), canonical, spec); refusal != nil {
		return *refusal
	}
	repository, err := h.Lookup.Find(ctx, canonical)
	if err != nil {
		return notFound(err)
	}
	return h.record(ctx, d, repository, spec)
}

func (h *Handler) record(
	ctx context.Context,
	d *delivery,
	repository *pacv1alpha1.Repository,
	spec *v1alpha1.GitEventSpec,
) answer {
	spec.Repository = v1alpha1.RepositoryReference{
		Namespace: repository.Namespace, Name: repository.Name, UID: repository.UID, URL: repository.Spec.URL,
	}
	small, waited := len(d.body) <= smallBodyBytes, false
	if small { // a larger one has a slot that others wait for; its namespace's rate lets few of them go on
		defer h.lanes.Enter(ctx, fairness.LaneOf(spec, d.body), len(d.body), func() { waited = true; d.release() })()
	}
	leave, err := h.places.Enter(repository.Namespace)
	if err != nil && small {
		d.release()
		leave, err = h.places.Await(ctx, repository.Namespace, waited)
	}
	if err != nil {
		return unavailable("too many deliveries of the Repository's namespace at once", err)
	}
	defer leave()
	name, created, err := h.Recorder.Record(ctx, spec, d.body)
	if err != nil {
		return unrecorded(err)
	}
	if !created {
		return duplicate(name)
	}
	return recorded(name)
}

// log writes the one line of a delivery: nothing of its body but its repository's URL, and no
// secret.
func (h *Handler) log(d *delivery, a answer, took time.Duration) {
	fields := []any{
		"provider", d.providerName(), "event", cut(d.origin.Event), "delivery", cut(d.origin.DeliveryKey),
		"status", a.status, "outcome", a.outcome, "reason", a.reason, "answer", a.message, "duration", took.String(),
	}
	if d.previousKey != "" { // whoever rotates it wants to know whether it is still used
		fields = append(fields, "previousWebhookSecret", d.previousKey)
	}
	if a.detail != "" {
		fields = append(fields, "detail", cut(a.detail))
	}
	if a.cause != nil {
		h.Logger.Errorw("delivery not recorded", append(fields, "error", cut(a.cause.Error()))...)
		return
	}
	h.Logger.Infow("delivery", fields...)
}
