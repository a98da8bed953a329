// SPDX-License-Identifier: Apache-2.0

package gitauth

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

// maxFormer is how many earlier tokens are revoked: as many as a secret keeps
// (resources.KeepTokens).
const maxFormer = 3

// made has the tokens in the secrets that this process has created and no other process has written
// since, while it leads. So they can be revoked without reading the secret. They are in no log and
// no metric.
type made struct {
	tokens recent.Map[holder, []string]
}

// holder is a secret of an event's run.
type holder struct {
	event  types.UID
	secret string
}

// created records the one token of a new secret; token is "" if it was not minted for it.
func (m *made) created(at holder, token string) {
	var tokens []string
	if token != "" {
		tokens = []string{token}
	}
	m.tokens.Put(at, tokens)
}

// renewed records one more token of a secret whose others are known. The oldest tokens have expired
// by themselves.
func (m *made) renewed(at holder, token string) {
	m.tokens.Update(at, func(before []string, known bool) ([]string, bool) {
		if !known || token == "" || slices.Contains(before, token) {
			return before, known
		}
		return append([]string{token}, before[:min(len(before), maxFormer)]...), true
	})
}

func (m *made) of(at holder) (tokens []string, known bool) {
	tokens, known = m.tokens.Get(at)
	return slices.Clone(tokens), known
}

func (m *made) forget(at holder) { m.tokens.Delete(at) }

func (m *made) clear() { m.tokens.DeleteFunc(func(holder) bool { return true }) }
