// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// GitHub's limits on an App's JWT.
const (
	maxJWTLife   = 10 * time.Minute
	maxJWTFuture = time.Minute // tolerated clock difference of iat
)

// verifyJWT checks an App's JSON web token and finds the App. The answer is
// GitHub's refusal, nil when the token is good. The caller holds mu.
func (g *GitHub) verifyJWT(raw string) (*app, *answer) {
	undecodable := unauthorized("A JSON web token could not be decoded")
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		return nil, undecodable
	}
	var head struct{ Alg string }
	var claims struct {
		Iss any
		Iat *float64
		Exp *float64
	}
	sig, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !segment(parts[0], &head) || !segment(parts[1], &claims) || head.Alg != "RS256" {
		return nil, undecodable
	}
	a := g.apps[issuer(claims.Iss)]
	if a == nil {
		missing := refuse(http.StatusNotFound, docs, "Integration not found")
		return nil, &missing
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(a.key, crypto.SHA256, sum[:], sig) != nil {
		return nil, undecodable
	}
	if problem := g.checkTimes(claims.Iat, claims.Exp); problem != "" {
		return nil, unauthorized(problem)
	}
	return a, nil
}

// checkTimes returns GitHub's words for what is wrong with iat or exp.
func (g *GitHub) checkTimes(iat, exp *float64) string {
	now := g.opts.Now()
	if iat == nil || *iat != math.Trunc(*iat) || unix(*iat).After(now.Add(maxJWTFuture)) {
		return "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
	}
	if exp == nil || *exp != math.Trunc(*exp) || !unix(*exp).After(now) {
		return "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires"
	}
	if unix(*exp).After(now.Add(maxJWTLife)) || unix(*exp).Sub(unix(*iat)) > maxJWTLife+maxJWTFuture {
		return "'Expiration time' claim ('exp') is too far in the future"
	}
	return ""
}

func unauthorized(message string) *answer {
	a := refuse(http.StatusUnauthorized, docAuthenticatingAsApp, message)
	return &a
}

func segment(s string, v any) bool {
	b, err := base64.RawURLEncoding.DecodeString(s)
	return err == nil && json.Unmarshal(b, v) == nil
}

// issuer reads the App's ID, which clients send as a string or as a number.
func issuer(v any) int64 {
	switch id := v.(type) {
	case string:
		n, _ := strconv.ParseInt(id, 10, 64)
		return n
	case float64:
		return int64(id)
	}
	return 0
}

func unix(f float64) time.Time { return time.Unix(int64(f), 0) }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
