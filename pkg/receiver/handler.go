// SPDX-License-Identifier: Apache-2.0

// Package receiver is the HTTP edge: it verifies a delivery of a Git service, records it as a
// GitEvent and answers when that is durable. Nothing in its memory is needed for correctness, so
// any number of replicas may run.
package receiver

import (
	"cmp"
	"context"
	"net/http"
	"runtime/debug"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/receiver/connlimit"
	"github.com/plumbline-ci/plumbline/pkg/receiver/delivery"
	"github.com/plumbline-ci/plumbline/pkg/receiver/fairness"
	"github.com/plumbline-ci/plumbline/pkg/receiver/incomingwebhook"
	"github.com/plumbline-ci/plumbline/pkg/receiver/recorder"
	"github.com/plumbline-ci/plumbline/pkg/receiver/secrets"
)

type eventRecorder interface {
	CheckRate(namespace string, push bool, size int) error
	Record(ctx context.Context, spec *v1alpha1.GitEventSpec, body []byte) (name string, created bool, err error)
}

// Options are what a Handler needs; all are required.
type Options struct {
	// Providers may claim a delivery in this order.
	Providers []provider.Provider
	// BaseURL returns the configured web URL of a provider's service, empty while it is not known.
	BaseURL func(provider string) string
	// Secret is the App's webhook secret.
	Secret secrets.AppSecret
	// Services are the Git services of Repositories that no App serves.
	Services Services
	Lookup   Lookup
	Recorder eventRecorder
	// PipelinesAsCode serves the other namespaces, if it runs.
	PipelinesAsCode PipelinesAsCode
	Metrics         *Metrics
	// Event reads a GitEvent live, for the answers to requests to /incoming. Nil waits for no plan.
	Event func(ctx context.Context, name string) (*v1alpha1.GitEvent, error)
	// Undelivered is called when a delivery of a Git service was answered 503, so it must be sent
	// again. It does not block.
	Undelivered func()
	Logger      *zap.SugaredLogger
	Clock       clock.PassiveClock
	// Timeout bounds each call to the API server.
	Timeout recorder.CallTimeout
}

// Handler answers deliveries.
type Handler struct {
	Options

	bodies, largeBodies semaphore
	// plans limits the requests to /incoming that wait for their plan.
	plans     semaphore
	guesses   *incomingwebhook.Guesses
	inFlight  fairness.InFlight
	recording fairness.RepositoryLimit
	groups    recent.Map[string, groupKeys]
	// unverified limits the deliveries that no webhook secret verifies.
	unverified *rate.Limiter
	// unverifiedDelay is the constant of that name, except in tests.
	unverifiedDelay time.Duration
}

// NewHandler returns a handler with its own limits.
func NewHandler(o Options) *Handler {
	for _, p := range o.Providers {
		o.Metrics.initialise(p.Name)
	}
	return &Handler{
		Options:         o,
		groups:          recent.Map[string, groupKeys]{Max: maxGroups},
		bodies:          make(semaphore, fairness.MaxInFlight),
		largeBodies:     make(semaphore, maxLargeBodies),
		plans:           make(semaphore, maxPlanWaits),
		guesses:         incomingwebhook.NewGuesses(),
		unverified:      rate.NewLimiter(UnverifiedQPS, UnverifiedBurst),
		unverifiedDelay: unverifiedDelay,
	}
}

// result is the answer to a request and what is known of the request, for the log, the metrics and
// the trace.
type result struct {
	answer
	provider string
	origin   provider.Origin
	// arrived is when the whole body was there: the time before that depends on the sender.
	arrived time.Time
	// verified is nil if the sender has not proved that it knows a webhook secret.
	verified *verified
}

func (r result) providerName() string { return cmp.Or(r.provider, "none") }

func (r result) previousKey() string {
	if r.verified == nil {
		return ""
	}
	return r.verified.PreviousKey()
}

func (r result) with(a *answer) result {
	r.answer = *a
	return r
}

// ServeHTTP answers one delivery, and logs and counts it once.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := h.Clock.Now()
	// Neither a sender that hangs up nor a shutdown interrupts a record.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), h.Timeout.Scale(workBudget))
	defer cancel()
	ctx, end := traced(ctx)
	done := h.receive(ctx, w, r)
	if done.delayed {
		h.delay(r, done.arrived)
	}
	if done.verified == nil { // only a verified sender keeps its connection
		w.Header().Set("Connection", "close")
	}
	done.write(w)
	if done.outcome == outcomeUnavailable && done.provider != v1alpha1.EventIncoming { // no log has those
		h.Undelivered()
	}
	end(done)
	took := h.Clock.Since(start)
	h.Metrics.observe(ctx, done, took)
	h.log(done, took)
}

// receive takes a request through its steps: claimed, verified, decoded, recorded; or claimed and
// forwarded. Each step takes the value of the one before it, and returns the next value or an
// answer. A panic is answered 503: one delivery that the code cannot handle is no reason to drop
// the connection without an answer.
func (h *Handler) receive(ctx context.Context, w http.ResponseWriter, r *http.Request) (done result) {
	done.arrived = h.Clock.Now()
	defer func() {
		if recover() != nil { // its value may quote the payload, so only the place is logged
			h.Logger.Errorw("handling a delivery panicked", "provider", done.providerName(), "stack", string(debug.Stack()))
			done.answer = *unavailable("the delivery could not be handled: "+
				"please report this with the log of Plumbline's receiver", fault.Transientf(reasonPanic, "panic"))
		}
	}()
	if r.URL.Path == incomingwebhook.Path {
		return h.receiveIncoming(ctx, w, r, done)
	}
	claimant, refused := h.claimant(r)
	if refused != nil {
		return done.with(refused)
	}
	done.provider = claimant.Name
	body, release, err := h.read(ctx, w, r)
	defer release()
	if err != nil {
		return done.with(unread(err))
	}
	done.arrived = h.Clock.Now()
	claimed, err := delivery.Claim(claimant, r.Header, body)
	done.origin = claimed.Origin()
	if err != nil {
		return done.with(undecoded(err))
	}
	if answered := h.forward(ctx, r, body, claimed.Origin().URL, claimed.Origin().App); answered != nil {
		return done.with(answered)
	}
	done.verified, refused = h.verify(ctx, claimed)
	if refused != nil {
		return done.with(refused)
	}
	owned, refused := h.decode(ctx, done.verified)
	if refused != nil {
		return done.with(h.forwardUnknown(ctx, r, body, done.verified, refused))
	}
	return done.with(h.record(ctx, owned, release))
}

func (h *Handler) claimant(r *http.Request) (*provider.Provider, *answer) {
	if r.Method != http.MethodPost {
		return nil, rejected(http.StatusMethodNotAllowed, reasonMethodNotAllowed, "send deliveries with POST")
	}
	if loop := looped(r); loop != nil {
		return nil, loop
	}
	claimant := delivery.Claimant(h.Providers, r.Header)
	if claimant == nil {
		return nil, rejected(http.StatusBadRequest, reasonUnknownService,
			"no Git service recognises this request: its headers are not those of a webhook delivery")
	}
	return claimant, nil
}

// delay waits until so long after the body arrived that the time of the answer shows nothing, or
// until there is no sender to answer. The body and its slot are released by now.
func (h *Handler) delay(r *http.Request, arrived time.Time) {
	timer := time.NewTimer(h.unverifiedDelay - h.Clock.Since(arrived))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-connlimit.Of(r.Context()).MarkUnverified():
	case <-r.Context().Done():
	}
}

// log writes the one line of a delivery: nothing of its body but its repository's URL, and no
// secret.
func (h *Handler) log(done result, took time.Duration) {
	fields := []any{
		"provider",
		done.providerName(),
		"event",
		cut(done.origin.Event),
		"delivery",
		cut(done.origin.DeliveryKey),
		"status",
		done.status,
		"outcome",
		done.outcome,
		"reason",
		done.reason,
		"answer",
		done.message,
		"duration",
		took.String(),
	}
	if key := done.previousKey(); key != "" { // who rotates a secret must know whether the old one is in use
		fields = append(fields, "previousWebhookSecret", key)
	}
	if done.detail != "" {
		fields = append(fields, "detail", cut(done.detail))
	}
	if done.cause != nil {
		h.Logger.Errorw("delivery not recorded", append(fields, "error", cut(done.cause.Error()))...)
		return
	}
	h.Logger.Infow("delivery", fields...)
}
