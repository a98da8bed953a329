// SPDX-License-Identifier: Apache-2.0

package gitauth

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// maxMade bounds the secrets whose tokens are remembered. A token has some 40 bytes, or 500 where
// it is a JWT; what is forgotten is read.
const maxMade = 10_000

// maxFormer is how many tokens before the last one are revoked, as many as a secret keeps
// (resources.KeepTokens).
const maxFormer = 3

// made are the tokens in the secrets that this process has made, and that no other one has written
// since: as long as it leads. So they can be revoked without a read of the secret. They are in no
// log and no metric.
type made struct {
	mu     sync.Mutex
	tokens map[holder][]string
}

// holder is a secret of an event's run.
type holder struct {
	event  types.UID
	secret string
}

// created notes the one token of a secret that did not exist before; token is "" if it was not
// minted for it.
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

// renewed notes one more token of a secret whose others are known. The oldest have ended by
// themselves.
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
