// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"io"
	"net/http"
	"slices"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/receiver/fairness"
	"github.com/plumbline-ci/plumbline/pkg/receiver/incomingwebhook"
	"github.com/plumbline-ci/plumbline/pkg/receiver/recorder"
)

// receiveIncoming takes a request to POST /incoming through its steps: read, verified, recorded,
// planned. A sender that knows no secret gets the same answer at the same time, whether there is
// such a Repository or not: what is looked up for it is in caches.
func (h *Handler) receiveIncoming(ctx context.Context, w http.ResponseWriter, r *http.Request, done result) result {
	done.provider, done.origin.Event = v1alpha1.EventIncoming, v1alpha1.EventIncoming
	body, release, refused := h.readIncoming(ctx, w, r)
	defer release()
	done.arrived = h.Clock.Now()
	if refused != nil {
		return done.with(refused)
	}
	request, bad := parsed(r, body)
	if forwarded := h.forwardIncoming(ctx, r, body, request); forwarded != nil {
		return done.with(forwarded)
	}
	if bad != nil {
		return done.with(unreadable(bad))
	}
	repository, refused := h.verifyIncoming(ctx, request)
	if refused != nil {
		return done.with(refused)
	}
	target, refused := h.targetOf(ctx, repository)
	if refused != nil {
		return done.with(refused)
	}
	spec, body, err := request.Event(*target, h.Clock.Now())
	if err != nil {
		return done.with(rejected(http.StatusUnprocessableEntity, reasonBadRepositoryURL, err.Error()))
	}
	done.origin.DeliveryKey = spec.DeliveryKey
	answered := h.recordEvent(ctx, spec, body, repository, release)
	if answered.outcome == outcomeUnavailable && fault.Of(answered.cause).Reason == recorder.ReasonForeignEvent {
		answered = rejected(http.StatusUnprocessableEntity, recorder.ReasonForeignEvent,
			"this Idempotency-Key was sent with another request before: send a new key with each new request")
	}
	release()
	return done.with(h.answerPlanned(ctx, answered))
}

// readIncoming reads the body. It has a slot until release is called.
func (h *Handler) readIncoming(
	ctx context.Context,
	w http.ResponseWriter,
	r *http.Request,
) (body []byte, release func(), refused *answer) {
	release = func() {}
	if refused := looped(r); refused != nil {
		return nil, release, refused
	}
	if bad := incomingwebhook.CheckHead(r); bad != nil && !h.PipelinesAsCode.Runs() { // it may be for that one
		return nil, release, unreadable(bad)
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(r.Body, incomingwebhook.MaxBodyBytes+1), r.Body}
	body, release, err := h.read(ctx, w, r)
	if err != nil {
		return nil, release, unread(err)
	}
	return body, release, nil
}

// parsed returns the request, or why it cannot be accepted.
func parsed(r *http.Request, body []byte) (request *incomingwebhook.Request, bad *incomingwebhook.Refusal) {
	if bad = incomingwebhook.CheckHead(r); bad != nil {
		return nil, bad
	}
	fairness.Compute(body, func() { request, bad = incomingwebhook.Read(r.Header, body) })
	return request, bad
}

// forwardIncoming forwards a request that names a Repository of Pipelines-as-Code as it is: also
// one that Plumbline would not accept. It returns nil if this installation decides about the
// request. Without a namespace, a Repository of this installation whose secret the request has
// comes first.
func (h *Handler) forwardIncoming(
	ctx context.Context, r *http.Request, body []byte, request *incomingwebhook.Request,
) *answer {
	if !h.PipelinesAsCode.Runs() || r.Method != http.MethodPost || len(body) > incomingwebhook.MaxBodyBytes {
		return nil
	}
	namespace, name := incomingwebhook.NameIn(r.URL.Query(), body)
	theirs := h.theirNamespace(ctx, namespace, name)
	if theirs == "" || namespace == "" && request != nil && h.isOurs(ctx, request) {
		return nil
	}
	return h.forwardFor(ctx, r, body, theirs)
}

// theirNamespace returns the namespace of a Repository that Pipelines-as-Code serves, by its name
// and possibly its namespace; "" if there is none.
func (h *Handler) theirNamespace(ctx context.Context, namespace, name string) string {
	for _, repository := range NamedIn(h.PipelinesAsCode.Repositories)(name) {
		if (namespace == "" || namespace == repository.Namespace) && h.isTheirs(ctx, repository) {
			return repository.Namespace
		}
	}
	return ""
}

// isTheirs reports whether Pipelines-as-Code serves a Repository.
func (h *Handler) isTheirs(ctx context.Context, repository *pacv1alpha1.Repository) bool {
	if !h.PipelinesAsCode.Serves(repository.Namespace) {
		return true
	}
	canonical, err := v1alpha1.CanonicalURL(repository.Spec.URL)
	return err == nil && h.servedByPipelinesAsCode(ctx, canonical) != ""
}

// isOurs reports whether a request has the secret of a Repository that Pipelines-as-Code does not
// serve.
func (h *Handler) isOurs(ctx context.Context, request *incomingwebhook.Request) bool {
	global, err := h.Services.GlobalRepository(ctx)
	if err != nil || h.guesses.Exhausted(request, h.Clock.Now()) {
		return false
	}
	found, _ := incomingwebhook.Find(request, h.Lookup.Named(request.Repository), global, h.Services)
	return slices.ContainsFunc(found, func(n incomingwebhook.Named) bool { return !h.isTheirs(ctx, n.Repository) })
}

func unreadable(why *incomingwebhook.Refusal) *answer {
	reason := reasonBadRequest
	switch why.Status {
	case http.StatusMethodNotAllowed:
		reason = reasonMethodNotAllowed
	case http.StatusRequestEntityTooLarge:
		reason = reasonTooLarge
	case http.StatusForbidden:
		reason = reasonNotAllowed
	}
	return rejected(why.Status, reason, why.Message)
}

// verifyIncoming finds the Repository of a request by its name and secret. Without a namespace, the
// secret decides between several Repositories of one name.
func (h *Handler) verifyIncoming(
	ctx context.Context, request *incomingwebhook.Request,
) (*pacv1alpha1.Repository, *answer) {
	if h.guesses.Exhausted(request, h.Clock.Now()) {
		a := rejected(http.StatusTooManyRequests, reasonTooManyFailures, "too many requests for this Repository "+
			"had a wrong secret: correct the secret, and send the request again after the time in Retry-After")
		a.retryAfter, a.delayed = incomingwebhook.RetryAfter, true
		return nil, a
	}
	global, err := h.Services.GlobalRepository(ctx)
	if err != nil {
		return nil, unavailable("the Repositories cannot be read at the moment: send the request again later", err)
	}
	found, others := incomingwebhook.Find(request, h.Lookup.Named(request.Repository), global, h.Services)
	switch len(found) {
	case 0:
		return nil, h.refuseIncoming(request, others)
	case 1:
		if bad := found[0].Check(request); bad != nil {
			return nil, unreadable(bad)
		}
		return found[0].Repository, nil
	}
	return nil, rejected(http.StatusBadRequest, reasonBadRequest,
		"several Repositories have this name and this secret: send namespace, too")
}

// refuseIncoming answers a request that no secret verifies with the same bytes, whatever the reason
// is. It requests newer copies of the secrets that do not match.
func (h *Handler) refuseIncoming(request *incomingwebhook.Request, others []pacv1alpha1.SecretKey) *answer {
	if !h.Services.Complete() {
		a := unavailable("the secrets of the Repositories are not known yet: send the request again in a moment", nil)
		a.delayed = true
		return a
	}
	if !h.unverified.Allow() {
		return tooManyUnverified()
	}
	h.guesses.Note(request, h.Clock.Now())
	for _, key := range others {
		h.Services.Request(key, true)
	}
	a := rejected(http.StatusUnauthorized, reasonUnauthenticated,
		"the request was not accepted. Check that a Repository with this name exists (and send its namespace), "+
			"that it has a rule in spec.incoming, and that the secret is the one in the rule's Secret. "+
			"The log of Plumbline's receiver says which")
	a.delayed, a.detail = true, "no such Repository, or it has no rule in spec.incoming: "+request.Namespace+"/"+request.Repository
	if len(others) > 0 {
		a.detail = "another secret than that of spec.incoming: " + request.Namespace + "/" + request.Repository
	}
	return a
}
