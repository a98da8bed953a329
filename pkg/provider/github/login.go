// SPDX-License-Identifier: Apache-2.0

package github

import (
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/golang-jwt/jwt/v4"
)

// jwtUse is how long a signed JWT is used again. ghinstallation makes it good for 90 s from now, so
// a minute is left for the call and for clocks that differ.
const jwtUse = 30 * time.Second

// loginKey is who logs in: an App with one of its keys.
type loginKey struct {
	app int64
	key [sha256.Size]byte
}

// login signs the JWTs of an App. A signature takes 2 ms of CPU, and each run has a token of its
// own to mint, so a JWT serves all calls of half a minute. It implements ghinstallation.Signer.
// Safe for concurrent use.
type login struct {
	app    int64
	signer ghinstallation.Signer // nil if the key is none
	now    func() time.Time

	mu     sync.Mutex
	jwt    string
	signed time.Time
}

func newLogin(app int64, pem []byte, now func() time.Time) *login {
	l := &login{app: app, now: now}
	if key, err := jwt.ParseRSAPrivateKeyFromPEM(pem); err == nil {
		l.signer = ghinstallation.NewRSASigner(jwt.SigningMethodRS256, key)
	}
	return l
}

// transport returns what logs in as the App through base; nil if its key is none.
func (l *login) transport(base http.RoundTripper) *ghinstallation.AppsTransport {
	if l.signer == nil {
		return nil
	}
	t, err := ghinstallation.NewAppsTransportWithOptions(base, l.app, ghinstallation.WithSigner(l))
	if err != nil { // it knows no other error than that there is no signer
		return nil
	}
	return t
}

// Sign returns a JWT with the claims, or one of a moment ago, whose claims differ in the time
// alone.
func (l *login) Sign(claims jwt.Claims) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if l.jwt != "" && lately(now.Sub(l.signed)) && lately(now.Round(0).Sub(l.signed.Round(0))) {
		return l.jwt, nil
	}
	signed, err := l.signer.Sign(claims)
	if err != nil {
		return "", err
	}
	l.jwt, l.signed = signed, now
	return signed, nil
}

// lately is asked with the time that has passed by both clocks of the machine: one stands still
// while it sleeps, the other is set.
func lately(passed time.Duration) bool { return passed >= 0 && passed < jwtUse }
