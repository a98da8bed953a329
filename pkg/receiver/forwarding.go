// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"net/http"

	"k8s.io/client-go/tools/cache"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/receiver/forward"
)

// PipelinesAsCode is a Pipelines-as-Code in the same cluster. It serves the namespaces that this
// installation does not serve.
type PipelinesAsCode struct {
	*forward.Forwarder
	// Runs reports whether it runs next to this installation (pipelines-as-code-url).
	Runs func() bool
	// Serves reports whether this installation serves a namespace.
	Serves func(namespace string) bool
	// Repositories is a cache of those of all namespaces, with the RepositoryIndexers.
	Repositories cache.Indexer
}

// servedByPipelinesAsCode returns the namespace of the Repository for which Pipelines-as-Code gets
// the requests about a canonical URL, "" if this installation decides about them. The claim of a
// URL is what makes it this installation's: until a Repository of a served namespace has claimed
// its URL, and once its namespace is not served any more, Pipelines-as-Code serves it.
//
// It reads caches only, and no secret: the sender is not verified, and Pipelines-as-Code verifies
// itself.
func (h *Handler) servedByPipelinesAsCode(ctx context.Context, canonical string) (namespace string) {
	if !h.PipelinesAsCode.Runs() || h.Lookup.Known(ctx, canonical) != nil {
		return ""
	}
	claim, err := h.Lookup.Cached.Claim(ctx, v1alpha1.ClaimName(canonical))
	claimed := err == nil && h.PipelinesAsCode.Serves(claim.Spec.Repository.Namespace)
	return h.PipelinesAsCode.first(byURL, canonical, func(namespace string) bool {
		return !h.PipelinesAsCode.Serves(namespace) || !claimed && !h.Lookup.CannotClaim(canonical, namespace)
	})
}

// first returns the first namespace of a Repository in an index for which a function is true, "" if
// there is none.
func (p PipelinesAsCode) first(index, value string, is func(namespace string) bool) string {
	for _, repository := range inIndex(p.Repositories, index, value) {
		if is(repository.Namespace) {
			return repository.Namespace
		}
	}
	return ""
}

// forward is the step of a delivery that Pipelines-as-Code serves. It returns nil if this
// installation decides about the delivery.
//
// The webhook of a group or an organization also delivers for projects that are not onboarded. If
// Pipelines-as-Code serves another project of the group, it gets these deliveries: the webhook's
// secret may be in a namespace that this installation does not serve, and GitLab disables a webhook
// whose deliveries are answered with errors.
func (h *Handler) forward(ctx context.Context, r *http.Request, body []byte, url string, app bool) *answer {
	canonical, err := v1alpha1.CanonicalURL(url)
	if err != nil || !h.PipelinesAsCode.Runs() {
		return nil
	}
	namespace := h.servedByPipelinesAsCode(ctx, canonical)
	if naming, _ := h.Lookup.Neighbours(canonical); namespace == "" && !app && len(naming) == 0 {
		namespace = h.PipelinesAsCode.first(byGroup, groupOf(canonical), func(namespace string) bool {
			return !h.PipelinesAsCode.Serves(namespace)
		})
	}
	if namespace == "" {
		return nil
	}
	return h.forwardFor(ctx, r, body, namespace)
}

// forwardUnknown forwards a verified delivery that is refused because nothing is known of its
// Repository. Pipelines-as-Code reads Repositories live, and the cache may lack a new one.
func (h *Handler) forwardUnknown(
	ctx context.Context, r *http.Request, body []byte, v *verified, refused *answer,
) *answer {
	canonical, err := v1alpha1.CanonicalURL(v.Origin().URL)
	if err != nil || refused.reason != reasonNoRepository || !h.PipelinesAsCode.Runs() {
		return refused
	}
	if naming, _ := h.Lookup.Neighbours(canonical); len(naming) > 0 { // it may not have the URL
		return refused
	}
	return h.forwardFor(ctx, r, body, "")
}

// forwardFor forwards a request about a Repository of a namespace, within the in-flight limits, and
// returns what Pipelines-as-Code answers.
func (h *Handler) forwardFor(ctx context.Context, r *http.Request, body []byte, namespace string) *answer {
	leave, err := h.inFlight.Acquire(namespace)
	if err != nil {
		return notForwarded(err)
	}
	defer leave()
	response, err := h.PipelinesAsCode.Forward(ctx, r, body)
	if err != nil {
		return notForwarded(err)
	}
	return forwarded(response)
}

// looped refuses a request that a receiver has forwarded.
func looped(r *http.Request) *answer {
	if r.Header.Get(forward.Header) == "" {
		return nil
	}
	return rejected(
		http.StatusLoopDetected,
		forward.ReasonLoop,
		"this request has been forwarded by a receiver of Plumbline: "+
			"pipelines-as-code-url must name Pipelines-as-Code's own Service",
	)
}

func forwarded(response forward.Response) *answer {
	return &answer{
		status:  response.Status,
		outcome: outcomeForwarded,
		reason:  "Forwarded",
		message: "forwarded to Pipelines-as-Code",
		text:    response.Body,
	}
}

func notForwarded(err error) *answer {
	a := unavailable("Pipelines-as-Code serves this Repository and does not answer at the moment: "+
		"send the delivery again later; the log of Plumbline's receiver says why", err)
	if fault.Of(err).Reason == forward.ReasonLoop {
		a.status, a.retryAfter = http.StatusLoopDetected, 0
		a.message = "the delivery came back when it was forwarded: pipelines-as-code-url must name Pipelines-as-Code's own Service"
	}
	return a
}
