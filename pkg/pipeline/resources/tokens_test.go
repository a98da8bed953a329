// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A secret keeps the tokens that pods may still use, newest first and not more than a few, for as
// long as they are the run's own.
func TestASecretKeepsTheTokensBefore(t *testing.T) {
	made := func(token string, own bool) SecretInput {
		in := secretInput(pushEvent(), "", token)
		in.Own = own
		return in
	}
	secret := MakeGitAuthSecret(made("t0", true))
	for i := 1; i <= 5; i++ {
		next := MakeGitAuthSecret(made(fmt.Sprint("t", i), true))
		KeepTokens(next, secret)
		secret = next
	}
	if diff := cmp.Diff([]string{"t5", "t4", "t3", "t2"}, OwnTokens(secret)); diff != "" {
		t.Error(diff)
	}
	again := MakeGitAuthSecret(made("t5", true)) // a write that landed and is repeated
	KeepTokens(again, secret)
	if diff := cmp.Diff([]string{"t5", "t4", "t3", "t2"}, OwnTokens(again)); diff != "" {
		t.Error(diff)
	}
	shared := MakeGitAuthSecret(made("configured", false))
	KeepTokens(again, shared)
	if got := OwnTokens(shared); got != nil {
		t.Errorf("a configured token is to be revoked: %v", got)
	}
	secret.Data["former-tokens"] = []byte(strings.Repeat("x ", 1000)) // a tenant may write it
	if n := len(OwnTokens(secret)); n != 4 {
		t.Errorf("%d tokens are to be revoked", n)
	}
}
