// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// H3 for Repositories: SIGTERM during each kind of write of the controller that claims URLs and gives them up. The write
// goes on, the controller ends within its grace period, and the next one ends what it began. TestKilledAtEveryCall has
// the calls for events. It does not run beside others: a status that another installation has written already needs no
// write of ours.
func TestTerminatedWhileAURLIsClaimedOrGivenUp(t *testing.T) {
	onlyInTestAll(t)
	for _, call := range []string{"create repositoryclaims", "update repositories/status", "update repositoryclaims/status"} {
		t.Run(strings.NewReplacer(" ", "-", "/", "-").Replace(call), func(t *testing.T) {
			w := newWorld(t, setup{receivers: 1, standby: true})
			gone := make(chan struct{})
			first, err := w.Controller(w.ctx, true)
			w.must(err)
			w.controllers = append(w.controllers, first)
			var chosen atomic.Int64
			first.Proxy.OnCall(func(c cluster.Call) {
				if nameOf(c) == call && w.concerns(c) && chosen.CompareAndSwap(0, int64(c.N)) {
					_ = first.Terminate()
					go func() {
						if first.Wait(w.ctx) == nil {
							close(gone)
						}
					}()
				}
			})
			held := first.Proxy.Add(cluster.Rule{Match: func(c cluster.Call) bool { return int64(c.N) == chosen.Load() }, Count: 1, Do: cluster.Delay(signalled)})
			w.start(first)
			released := call == "update repositoryclaims/status"
			if released {
				w.claimed()
				w.must(w.Plumbline.PipelinesascodeV1alpha1().Repositories(w.ci).Delete(w.ctx, "app", metav1.DeleteOptions{}))
			}
			waitFor(w, gone, "the controller ends")
			// A status is written over the version that the cache had, which another installation may have replaced meanwhile.
			if status := first.Proxy.Calls()[chosen.Load()-1].Status; held.Hits() != 1 || status/100 != 2 && status != http.StatusConflict {
				t.Errorf("of %d held writes the first was answered %d, want one that was accepted", held.Hits(), status)
			}
			w.startController(true)
			w.eventually(takeover, "the next controller leads and agrees", func() error {
				claim := w.claim(w.repo.HTMLURL)
				if claim == nil || claim.Spec.Repository.Namespace != w.ci || (claim.Status.ReleasedAt != nil) != released {
					return fmt.Errorf("the claim is %+v", claim)
				}
				return w.made(w.controllers[1], "list eventpayloads")
			})
		})
	}
}

// concerns tells whether a call is about the world's own Repository or claim: all installations see all Repositories.
func (w *world) concerns(c cluster.Call) bool {
	return c.Namespace == w.ci || c.Namespace == w.Namespace
}
