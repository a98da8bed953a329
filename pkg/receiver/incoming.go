// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"io"
	"net/http"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/receiver/incomingwebhook"
	"github.com/plumbline-ci/plumbline/pkg/receiver/recorder"
)

// receiveIncoming takes a request to POST /incoming through its steps: read, verified, recorded,
// planned. A sender that knows no secret gets the same answer at the same time, whether there is
// such a Repository or not: what is looked up for it is in caches.
func (h *Handler) receiveIncoming(ctx context.Context, w http.ResponseWriter, r *http.Request, done result) result {
	done.provider, done.origin.Event = v1alpha1.EventIncoming, v1alpha1.EventIncoming
	if loop := looped(r); loop != nil {
		return done.with(loop)
	}
	bad := incomingwebhook.CheckHead(r)
	if bad != nil && !h.PipelinesAsCode.Runs() { // it may be for that one
		return done.with(unreadable(bad))
	}
	body, release, err := h.readIncoming(ctx, w, r)
	defer release()
	done.arrived = h.Clock.Now()
	if err != nil {
		return done.with(unread(err))
	}
	if forwarded := h.forwardIncoming(ctx, r, body); forwarded != nil {
		return done.with(forwarded)
	}
	if bad != nil {
		return done.with(unreadable(bad))
	}
	request, bad := incomingwebhook.Read(r.Header, body)
	if bad != nil {
		return done.with(unreadable(bad))
	}
	spec, body, repository, refused := h.eventOf(ctx, request)
	if refused != nil {
		return done.with(refused)
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

// readIncoming reads the body, up to one byte over its limit. It has a slot until release is
// called.
func (h *Handler) readIncoming(
	ctx context.Context, w http.ResponseWriter, r *http.Request,
) (body []byte, release func(), err error) {
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(r.Body, incomingwebhook.MaxBodyBytes+1), r.Body}
	return h.read(ctx, w, r)
}

// eventOf verifies a request. It returns the event of it, and the body that is stored.
func (h *Handler) eventOf(
	ctx context.Context, request *incomingwebhook.Request,
) (spec *v1alpha1.GitEventSpec, body []byte, repository *pacv1alpha1.Repository, refused *answer) {
	if repository, refused = h.verifyIncoming(ctx, request); refused != nil {
		return nil, nil, nil, refused
	}
	target, refused := h.targetOf(ctx, repository)
	if refused != nil {
		return nil, nil, nil, refused
	}
	spec, body = request.Event(*target, h.Clock.Now())
	return spec, body, repository, nil
}

// forwardIncoming forwards a request that names a Repository of Pipelines-as-Code as it is: also
// one that Plumbline would not accept. It returns nil if this installation decides about the
// request.
func (h *Handler) forwardIncoming(ctx context.Context, r *http.Request, body []byte) *answer {
	if !h.PipelinesAsCode.Runs() || r.Method != http.MethodPost || len(body) > incomingwebhook.MaxBodyBytes {
		return nil
	}
	namespace, name := incomingwebhook.NameIn(r.URL.Query(), body)
	theirs := h.theirNamespace(ctx, namespace, name)
	if theirs == "" {
		return nil
	}
	return h.forwardFor(ctx, r, body, theirs)
}

// theirNamespace returns the namespace of a Repository that Pipelines-as-Code serves, by its name
// and possibly its namespace; "" if there is none. Without a namespace, all Repositories of the
// name must be its: it refuses the name of several.
func (h *Handler) theirNamespace(ctx context.Context, namespace, name string) (theirs string) {
	for _, repository := range NamedIn(h.PipelinesAsCode.Repositories)(name) {
		if namespace != "" && namespace != repository.Namespace {
			continue
		}
		if !h.isTheirs(ctx, repository) {
			return ""
		}
		theirs = repository.Namespace
	}
	return theirs
}

// isTheirs reports whether Pipelines-as-Code serves a Repository.
func (h *Handler) isTheirs(ctx context.Context, repository *pacv1alpha1.Repository) bool {
	if !h.PipelinesAsCode.Serves(repository.Namespace) {
		return true
	}
	canonical, err := v1alpha1.CanonicalURL(repository.Spec.URL)
	return err == nil && h.servedByPipelinesAsCode(ctx, canonical) != ""
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
	h.guesses.Note(request, h.Clock.Now()) // a request over the rate is a guess, too
	if !h.unverified.Allow() {
		return tooManyUnverified()
	}
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
