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
	e := newEnv(t)
	e.move(0, commit("a"))
	e.move(7, commit("b"))
	e.run(time.Hour)
	claim := e.claims.List()[0].(*v1alpha1.RepositoryClaim).DeepCopy() //nolint:forcetypeassert // nothing else is there
	claim.CreationTimestamp = metav1.NewTime(e.clock.Now())
	e.add(e.claims, claim)
	e.start()
	e.signal() // a receiver has started
	e.run(time.Hour)
	e.wantCondition("")
	e.move(7, commit("c"))
	e.pause(10 * time.Minute)
	e.run(10 * time.Minute)
	e.wantCondition("False HeadsNotRecorded")
}
