// SPDX-License-Identifier: Apache-2.0

package gitauth

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// maxMade bounds the secrets whose tokens are remembered. A token has some 40 bytes, a JWT 500. A
// forgotten one is read.
const maxMade = 10_000

// maxFormer is how many earlier tokens are revoked: as many as a secret keeps
// (resources.KeepTokens).
const maxFormer = 3

// made has the tokens in the secrets that this process has created and no other process has written
// since, while it leads. So they can be revoked without reading the secret. They are in no log and
// no metric.
type made struct {
	mu     sync.Mutex
	tokens map[holder][]string
}

// holder is a secret of an event's run.
type holder struct {
	event  types.UID
	secret string
}

// created records the one token of a new secret; token is "" if it was not minted for it.
func (m *made) created(at holder, token string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tokens == nil || len(m.tokens) >= maxMade {
		m.tokens = map[holder][]string{}
	}
	m.tokens[at] = nil
	if token != "" {
		m.tokens[at] = []string{token}
	}
}

// renewed records one more token of a secret whose others are known. The oldest tokens have expired
// by themselves.
func (m *made) renewed(at holder, token string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.tokens[at]
	if !known || token == "" || slices.Contains(before, token) {
		return
	}
	m.tokens[at] = append([]string{token}, before[:min(len(before), maxFormer)]...)
}

func (m *made) of(at holder) (tokens []string, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	tokens, known = m.tokens[at]
	return slices.Clone(tokens), known
}

func (m *made) forget(at holder) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.tokens, at)
}

func (m *made) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tokens = nil
}
