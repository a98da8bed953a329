// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"time"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/receiver/delivery"
	"github.com/plumbline-ci/plumbline/pkg/receiver/secrets"
)

// verifyWithGroup verifies a delivery for a URL that the caches do not know. It tries the webhook
// secrets of the Repositories that have the URL, of those of its group, and of the global
// Repository. A group's webhook delivers for all projects of the group, and GitLab disables it when
// deliveries for projects that are not onboarded are answered with errors (L8, A12).
//
// Nil means that no secret matches. A missing secret is skipped. It is an error if a secret cannot
// be read, or if that of a Repository with the URL itself is missing.
func (h *Handler) verifyWithGroup(ctx context.Context, c delivery.Claimed, canonical string) (*verified, error) {
	candidates, err := h.groupSecrets(ctx, canonical)
	if err != nil {
		return nil, err
	}
	hashed := 0
	for _, candidate := range candidates {
		if hashed += len(c.Body()); c.Provider().SignsBody && hashed > maxGroupHashed {
			break // the Repository with the URL is looked up, and its secret is tried
		}
		secret, err := h.readGroupSecret(ctx, candidate)
		if err != nil && (candidate.named || fault.Of(err).Class != fault.Operator) {
			return nil, err
		}
		if err != nil {
			continue
		}
		if v, err := c.Match(secret); err == nil {
			return &verified{Verified: v}, nil
		}
	}
	return nil, nil
}

// readGroupSecret waits only for the copy that a Repository with the URL itself names. A missing
// secret of a neighbour must not delay a delivery, nor show an unverified sender by the time that
// there is a neighbour.
func (h *Handler) readGroupSecret(ctx context.Context, s groupSecret) (secrets.Secret, error) {
	if s.named {
		return h.Services.Secret(ctx, s.key)
	}
	return h.Services.Copy(s.key)
}

// groupSecret is where a webhook secret is. Named reports whether a Repository with the delivery's
// URL names it.
type groupSecret struct {
	key   pacv1alpha1.SecretKey
	named bool
}

// groupSecrets returns at most maxGroupSecrets secrets, each once: that of the global Repository,
// those of Repositories with the URL, and those of its group.
func (h *Handler) groupSecrets(ctx context.Context, canonical string) ([]groupSecret, error) {
	global, err := h.Services.GlobalRepository(ctx)
	if err != nil {
		return nil, err
	}
	naming, group := h.Lookup.Neighbours(canonical)
	var found []groupSecret
	seen := map[pacv1alpha1.SecretKey]bool{}
	add := func(keys []pacv1alpha1.SecretKey, named bool) {
		for _, key := range keys {
			if !seen[key] && len(found) < maxGroupSecrets {
				found = append(found, groupSecret{key, named})
			}
			seen[key] = true
		}
	}
	if global != nil {
		add(webhookKeys([]*pacv1alpha1.Repository{global}, global), false)
	}
	add(webhookKeys(naming, global), true)
	collect := func() []pacv1alpha1.SecretKey { return webhookKeys(group(), global) }
	add(h.cachedKeys(groupOf(canonical), collect), false)
	return found, nil
}

// webhookKeys returns at most maxGroupSecrets webhook secrets of Repositories, each once. It is nil
// if there are no Repositories.
func webhookKeys(
	repositories []*pacv1alpha1.Repository, global *pacv1alpha1.Repository,
) (keys []pacv1alpha1.SecretKey) {
	if len(repositories) > 0 {
		keys = []pacv1alpha1.SecretKey{}
	}
	seen := map[pacv1alpha1.SecretKey]bool{{}: true}
	for _, repository := range repositories {
		if len(keys) == maxGroupSecrets {
			break
		}
		service, err := pacv1alpha1.ServiceOf(repository, global)
		if err != nil || seen[service.Webhook] { // settings that contradict each other: a condition reports it
			continue
		}
		seen[service.Webhook] = true
		keys = append(keys, service.Webhook)
	}
	return keys
}

// groupKeys are the webhook secrets that the Repositories of a group named at a time.
type groupKeys struct {
	keys []pacv1alpha1.SecretKey
	at   time.Time
}

// cachedKeys returns what collect returned for a group in the last groupReuse, or returns now. A
// group may have thousands of Repositories, and an unverified sender can cause the look-up.
func (h *Handler) cachedKeys(group string, collect func() []pacv1alpha1.SecretKey) []pacv1alpha1.SecretKey {
	return h.groups.Update(group, func(known groupKeys, found bool) (groupKeys, bool) {
		if found && time.Since(known.at) < groupReuse {
			return known, true
		}
		keys := collect()
		return groupKeys{keys, time.Now()}, keys != nil // nil: unverified senders invent groups
	}).keys
}
