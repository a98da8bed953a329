// SPDX-License-Identifier: Apache-2.0

package github

import (
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v4"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestJWTIsReusedForHalfAMinute(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakeClock(time.Now())
	l := newLogin(testApp, []byte(appKey()), c.Now)
	signed := func() string {
		token, err := l.Sign(&jwt.RegisteredClaims{IssuedAt: jwt.NewNumericDate(c.Now())})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	first := signed()
	c.Step(jwtUse - time.Second)
	if signed() != first {
		t.Error("a JWT of a moment ago is not used again")
	}
	c.Step(time.Second)
	second := signed()
	if second == first {
		t.Error("a JWT is used for longer than it may be")
	}
	c.Step(-time.Minute)
	if signed() == second {
		t.Error("a JWT of the future is used again: the clock was set back, and GitHub refuses it")
	}
}

func TestInvalidKeySignsNothing(t *testing.T) {
	t.Parallel()
	if newLogin(testApp, []byte("no key"), time.Now).transport(nil) != nil {
		t.Error("it logs in")
	}
}
