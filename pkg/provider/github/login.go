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

// jwtUse is how long a signed JWT is reused. ghinstallation makes it valid for 90 s from now, which
// leaves a minute for the call and for clock differences.
const jwtUse = 30 * time.Second

// loginKey identifies an App with one of its keys.
type loginKey struct {
	app int64
	key [sha256.Size]byte
}

// login signs the JWTs of an App. A signature takes 2 ms of CPU, and each run mints its own token,
// so one JWT serves all calls of half a minute. It implements ghinstallation.Signer and is safe for
// concurrent use.
type login struct {
	app    int64
	signer ghinstallation.Signer // nil if the key is invalid
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

// transport returns a transport that authenticates as the App through base; nil if its key is
// invalid.
func (l *login) transport(base http.RoundTripper) *ghinstallation.AppsTransport {
	if l.signer == nil {
		return nil
	}
	t, err := ghinstallation.NewAppsTransportWithOptions(base, l.app, ghinstallation.WithSigner(l))
	if err != nil { // the only error is a missing signer
		return nil
	}
	return t
}

// Sign returns a JWT with the claims, or a recent one, whose claims differ only in the time.
func (l *login) Sign(claims jwt.Claims) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if l.jwt != "" && recently(now.Sub(l.signed)) && recently(now.Round(0).Sub(l.signed.Round(0))) {
		return l.jwt, nil
	}
	signed, err := l.signer.Sign(claims)
	if err != nil {
		return "", err
	}
	l.jwt, l.signed = signed, now
	return signed, nil
}

// recently is called with the time that has passed by both clocks of the machine: one does not
// advance during sleep, the other can be set.
func recently(passed time.Duration) bool { return passed >= 0 && passed < jwtUse }
