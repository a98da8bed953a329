// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// token is the content of a Secret with a token.
type token struct {
	secret  types.NamespacedName
	content content
}

// noteExpiry returns what receives, after each call, when the session's token expires. It is zero
// if the Git service does not say.
func (s *Session) noteExpiry() func(at time.Time) {
	of := token{s.secret, s.saw[s.secret]}
	return func(at time.Time) {
		if !at.IsZero() {
			s.pool.expiries.Put(of, at)
		} else {
			s.pool.expiries.GetOrCreate(of, func() time.Time { return at })
		}
	}
}

// TokenExpires returns the Secret of the token that the session has used, and when the token
// expires: zero if the Git service does not say. The name is empty for the credentials of an App,
// and before a call.
func (s *Session) TokenExpires() (secret types.NamespacedName, at time.Time) {
	at, called := s.pool.expiries.Get(token{s.secret, s.saw[s.secret]})
	if s.client == nil || !called {
		return types.NamespacedName{}, time.Time{}
	}
	return s.secret, at
}
