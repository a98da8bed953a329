// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// What moved before this installation has claimed the URL was another installation's: it has run
// it, and its records are not here.
func TestHeadsOfAnotherInstallationsTimeAreNotNamed(t *testing.T) {
	w := newWorld(t)
	w.move(0, commit("a"))
	w.move(7, commit("b"))
	w.run(time.Hour)
	claim := w.claims.List()[0].(*v1alpha1.RepositoryClaim).DeepCopy() //nolint:forcetypeassert // nothing else is there
	claim.CreationTimestamp = metav1.NewTime(w.clock.Now())
	w.add(w.claims, claim)
	w.start()
	w.heard() // a receiver has started
	w.run(time.Hour)
	w.wantCondition("")
	w.move(7, commit("c"))
	w.pause(10 * time.Minute)
	w.run(10 * time.Minute)
	w.wantCondition("False HeadsNotRecorded")
}
