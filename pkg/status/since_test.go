// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A check that waits says since when, and is not sent again because of a retry: neither the time of
// the next attempt nor the time zone of the process that words it changes the check.
func TestACheckThatWaitsIsTheSameAtEachRetry(t *testing.T) {
	begun := time.Date(2026, 11, 27, 13, 40, 31, 0, time.UTC)
	for _, reason := range []string{"RateLimited", "QuotaExceeded", "AdmissionWebhookUnavailable", "Forbidden",
		"ConcurrencyLimit"} {
		var first string
		for retry, zone := range []*time.Location{time.UTC, time.FixedZone("east", 14*3600),
			time.FixedZone("west", -11*3600)} {
			wait := waitFor("Throttled", reason, "place 1 in the queue")
			wait.Since, wait.NotBefore = metav1.NewTime(begun.In(zone)),
				&metav1.Time{Time: begun.Add(time.Duration(retry) * time.Hour)}
			check := Desired(Input{
				Application: "CI", Event: event(v1alpha1.DispositionRuns), Runs: []RunState{{Run: planned(), Wait: wait}},
			})[0]
			for _, words := range []string{check.Title, check.Text} { // GitLab shows the title alone
				if want := " since 13:40 UTC on 27 November"; !strings.Contains(words, want) {
					t.Errorf("%s: %q does not say%s", reason, words, want)
				}
			}
			if retry == 0 {
				first = Digest(check)
			} else if Digest(check) != first {
				t.Errorf("%s: retry %d is another check: %+v", reason, retry, check)
			}
		}
	}
}
