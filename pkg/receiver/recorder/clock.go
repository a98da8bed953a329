// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// isRecent reports whether the signed body of a delivery says that its event happened a moment ago.
// Then no record of it was deleted yet, and there is no tombstone: the sweep leaves each stub for
// half an hour (docs/adr/0028). Nothing is recent unless the API server has shown lately that its
// clock and ours agree.
func (r *Recorder) isRecent(spec *v1alpha1.GitEventSpec) bool {
	now := r.Clock.Now()
	return spec.Body != nil && r.clockIsTrusted(now) && now.Sub(spec.Body.At.Time).Abs() < recentTime
}

// clockIsTrusted reports whether our clock has run evenly since it was last compared. If it was
// set, the difference of the wall clock is not that of the monotonic clock. The API server's clock
// may be set as well, so a comparison is valid for clockAge only.
func (r *Recorder) clockIsTrusted(now time.Time) bool {
	at := r.clocksAgree.Load()
	if at == nil {
		return false
	}
	wall, monotonic := now.Round(0).Sub(at.Round(0)), now.Sub(*at)
	return wall >= 0 && wall < clockAge && (wall-monotonic).Abs() < clockTolerance
}

// compareClocks compares our time of a create with the API server's.
func (r *Recorder) compareClocks(created metav1.Time, at time.Time) {
	if created.Sub(at).Abs() >= clockTolerance {
		r.clocksAgree.Store(nil)
		return
	}
	r.clocksAgree.Store(&at)
}
