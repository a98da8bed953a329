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

// noteExpiry returns what receives when the Git service says that the session's token expires.
func (s *Session) noteExpiry() func(at time.Time) {
	of := token{s.secret, s.saw[s.secret]}
	return func(at time.Time) { s.pool.expiries.Put(of, at) }
}

// TokenExpires returns the Secret of the token that the session has logged in with, and when the
// token expires: zero if the Git service does not say. The name is empty for the credentials of an
// App, and before the login.
func (s *Session) TokenExpires() (secret types.NamespacedName, at time.Time) {
	o := &s.pool.options
	if s.client == nil || s.secret == (types.NamespacedName{Namespace: o.Namespace, Name: o.AppSecret}) {
		return types.NamespacedName{}, time.Time{}
	}
	at, _ = s.pool.expiries.Get(token{s.secret, s.saw[s.secret]})
	return s.secret, at
}
