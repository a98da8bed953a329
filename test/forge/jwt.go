// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/golang-jwt/jwt/v4"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// GitHub's limits on an App's JWT.
const (
	maxJWTLife   = 10 * time.Minute
	maxJWTFuture = time.Minute // tolerated clock difference of iat
)

// verifyJWT checks an App's JSON web token and finds the App. The caller holds mu.
func (g *GitHub) verifyJWT(raw string) (a *app) {
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"RS256"}), jwt.WithoutClaimsValidation())
	claims := jwt.MapClaims{}
	_, err := parser.ParseWithClaims(raw, claims, func(*jwt.Token) (any, error) {
		if a = g.apps[issuer(claims["iss"])]; a == nil {
			panic(traffic.Refuse(refuse(http.StatusNotFound, docs, "Integration not found")))
		}
		return a.key, nil
	})
	if err != nil {
		panic(traffic.Refuse(undecodable()))
	}
	if problem := g.checkTimes(claims["iat"], claims["exp"]); problem != "" {
		panic(traffic.Refuse(refuse(http.StatusUnauthorized, docAuthenticatingAsApp, problem)))
	}
	return a
}

func undecodable() answer {
	return refuse(http.StatusUnauthorized, docAuthenticatingAsApp, "A JSON web token could not be decoded")
}

// checkTimes returns GitHub's words for what is wrong with iat or exp.
func (g *GitHub) checkTimes(iat, exp any) string {
	now := g.opts.Now()
	issued, whole := seconds(iat)
	if !whole || issued.After(now.Add(maxJWTFuture)) {
		return "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
	}
	expires, whole := seconds(exp)
	if !whole || !expires.After(now) {
		return "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires"
	}
	if expires.After(now.Add(maxJWTLife)) || expires.Sub(issued) > maxJWTLife+maxJWTFuture {
		return "'Expiration time' claim ('exp') is too far in the future"
	}
	return ""
}

// seconds is the time of a whole number.
func seconds(claim any) (at time.Time, whole bool) {
	n, isNumber := claim.(float64)
	return time.Unix(int64(n), 0), isNumber && n == math.Trunc(n)
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

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
