// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"net/http"
	"sync"
	"time"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/receiver/secrets"
)

// ownerOf returns the Repository of a URL, or the answer when there is none. The caches suffice for
// a true delivery. What they do not know is asked live for a sender that somebody vouches for, and
// for a stranger as far as the strangers' budget goes: a Repository that was made a moment ago may
// be its own.
func (h *Handler) ownerOf(ctx context.Context, d *delivery, canonical string) (*pacv1alpha1.Repository, *answer) {
	if repository := h.Lookup.Known(ctx, canonical); repository != nil {
		return repository, nil
	}
	find := h.Lookup.Find
	vouched, err := h.vouch(ctx, d, canonical)
	switch {
	case err != nil:
		a := unavailable("the webhook secret cannot be read at the moment", err)
		return nil, &a
	case vouched:
		d.verified = true
	case !h.admits(d):
		a := overrun()
		return nil, &a
	default:
		find = h.Lookup.FindUnverified
	}
	repository, err := find(ctx, canonical)
	if err == nil {
		d.verified = false // as this Repository's sender it has yet to prove itself
		return repository, nil
	}
	a := notFound(err)
	if f := fault.Of(err); !vouched && (f.Class == fault.Ignored || f.Reason == fault.ReasonNotClaimedYet) {
		a = h.stranger(d, f.Reason, f.Message)
	}
	return nil, &a
}

// vouch reports whether a delivery for a URL that is not Known has the webhook secret of a
// Repository that names the URL, of one of its group, or of the global one. A group's webhook
// delivers for all its projects, and GitLab disables it when those that nobody has onboarded are
// answered with errors (L8, A12). A secret that is missing vouches for nobody; it is an error when
// one cannot be read, or is missing for the URL itself.
func (h *Handler) vouch(ctx context.Context, d *delivery, canonical string) (bool, error) {
	vouchers, err := h.vouchers(ctx, canonical)
	if err != nil {
		return false, err
	}
	for _, v := range vouchers {
		secret, err := h.voucherSecret(ctx, v)
		if err != nil && (v.named || fault.Of(err).Class != fault.Operator) {
			return false, err
		}
		if err != nil {
			continue
		}
		if d.fits(secret) == nil {
			return true, nil
		}
	}
	return false, nil
}

// voucherSecret waits only for the copy that the URL's own Repository names: a neighbour's that is
// missing must neither keep a true delivery waiting nor tell a stranger by the time that there is
// one.
func (h *Handler) voucherSecret(ctx context.Context, v voucher) (secrets.Secret, error) {
	if v.named {
		return h.Services.Secret(ctx, v.key)
	}
	return h.Services.Copy(v.key)
}

// voucher is where a webhook secret is kept; named reports whether a Repository that names the
// delivery's URL does.
type voucher struct {
	key   pacv1alpha1.SecretKey
	named bool
}

// vouchers are at most maxVouchers places, each once: that of the global Repository, of those that
// name the URL, and of the others of its group.
func (h *Handler) vouchers(ctx context.Context, canonical string) ([]voucher, error) {
	global, err := h.Services.GlobalRepository(ctx)
	if err != nil {
		return nil, err
	}
	naming, group := h.Lookup.Beside(canonical)
	var vouchers []voucher
	seen := map[pacv1alpha1.SecretKey]bool{}
	add := func(keys []pacv1alpha1.SecretKey, named bool) {
		for _, key := range keys {
			if !seen[key] && len(vouchers) < maxVouchers {
				vouchers = append(vouchers, voucher{key, named})
			}
			seen[key] = true
		}
	}
	if global != nil {
		add(webhookKeys([]*pacv1alpha1.Repository{global}, global), false)
	}
	add(webhookKeys(naming, global), true)
	add(h.groups.keys(groupOf(canonical), func() []pacv1alpha1.SecretKey { return webhookKeys(group(), global) }), false)
	return vouchers, nil
}

// webhookKeys are at most maxVouchers places where Repositories keep their webhook secrets, each
// once; nil when there are no Repositories.
func webhookKeys(
	repositories []*pacv1alpha1.Repository,
	global *pacv1alpha1.Repository,
) (keys []pacv1alpha1.SecretKey) {
	if len(repositories) > 0 {
		keys = []pacv1alpha1.SecretKey{}
	}
	seen := map[pacv1alpha1.SecretKey]bool{{}: true}
	for _, repository := range repositories {
		if len(keys) == maxVouchers {
			break
		}
		service, err := pacv1alpha1.ServiceOf(repository, global)
		if err != nil || seen[service.Webhook] { // its settings contradict each other: a condition tells
			continue
		}
		seen[service.Webhook] = true
		keys = append(keys, service.Webhook)
	}
	return keys
}

// groups remember for groupReuse where the Repositories of a group keep their webhook secrets: a
// group may have thousands of them, and anybody may ask. The zero value is ready.
type groups struct {
	mu sync.Mutex
	of map[string]groupKeys
}

type groupKeys struct {
	keys []pacv1alpha1.SecretKey
	at   time.Time
}

func (g *groups) keys(group string, collect func() []pacv1alpha1.SecretKey) []pacv1alpha1.SecretKey {
	g.mu.Lock()
	defer g.mu.Unlock()
	if known, there := g.of[group]; there && time.Since(known.at) < groupReuse {
		return known.keys
	}
	keys := collect()
	if keys == nil { // nobody's group: strangers make names up
		return nil
	}
	if g.of == nil || len(g.of) >= maxGroups {
		g.of = map[string]groupKeys{}
	}
	g.of[group] = groupKeys{keys, time.Now()}
	return keys
}

// admits takes a delivery that nobody vouches for off the strangers' budget, once.
func (h *Handler) admits(d *delivery) bool {
	if !d.admitted {
		d.admitted = h.strangers.TryAccept()
	}
	return d.admitted
}

// stranger answers a delivery that nobody vouches for. Past the budget it is 503 whatever was
// looked up, so that this does not tell either.
func (h *Handler) stranger(d *delivery, reason, detail string) answer {
	if !h.admits(d) {
		return overrun()
	}
	return unbelieved(reason, detail)
}

// unverified answers what verify refused: with 503 when the secret that would fit may be one that
// could not be read.
func unverified(err error, refused func() answer) answer {
	if fault.Of(err).Class == fault.Transient {
		return unavailable("the webhook secret cannot be read at the moment", err)
	}
	return refused()
}

func overrun() answer {
	a := rejected(
		http.StatusServiceUnavailable,
		"TooManyStrangers",
		"too many deliveries that nobody vouches for at once: send it again in a moment",
	)
	a.retryAfter, a.late = retryAfter, true
	return a
}
