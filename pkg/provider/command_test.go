// SPDX-License-Identifier: Apache-2.0

package provider

import "testing"

func TestIsCommand(t *testing.T) {
	for comment, want := range map[string]bool{
		"/test": true, "/retest": true, "/cancel": true, "/ok-to-test": true, "  /test  ": true, "/test build": true, "/retest build key=value": true,
		"/cancel build": true, "/ok-to-test 0123abc": true, "please\r\n/retest\r\nthanks": true, "please\n/ok-to-test\r\nthanks": true,
		"": false, "thanks": false, "test": false, "see /test": false, "/tests": false, "/test-all": false, "/retested build": false,
		"/cancel-deploy": false, "/ok-to-test please": false, "/ok-to-tests": false, "/deploy /test": false, "//test": false, "/Test": false,
	} {
		if got := IsCommand(comment); got != want {
			t.Errorf("%q: %t, want %t", comment, got, want)
		}
	}
}
