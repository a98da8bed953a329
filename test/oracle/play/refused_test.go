// SPDX-License-Identifier: Apache-2.0

package play

import "testing"

func TestSameTextForEachWayToNoticeADeadWebhook(t *testing.T) {
	const post = `Post "https://webhook.tekton.svc:443/defaulting": `
	const want = `Post "https://webhook.tekton.svc:443/defaulting": dial tcp 10.96.0.1:443: connect: connection refused`
	for _, noticed := range []string{
		"dial tcp 127.0.0.1:41237: connect: connection refused",
		"write tcp 127.0.0.1:50310->127.0.0.1:41237: write: broken pipe",
		"read tcp 127.0.0.1:50310->127.0.0.1:41237: read: connection reset by peer",
		"EOF",
	} {
		if got := sameText(post + noticed); got != want {
			t.Errorf("%s: got %s", noticed, got)
		}
	}
}
