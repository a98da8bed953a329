// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// Two installations serve a namespace each; the rights of the first end at its own. Both get a
// push, neither makes a call in the other's namespace, and a Repository there that names a URL of
// its own is no rival. Then the namespace moves to the second installation, while a run of the
// first still goes on: the first finishes it, starts nothing new, and its status is the second's.
func TestANamespaceMovesToAnotherInstallation(t *testing.T) {
	t.Parallel()
	first, second := newWorld(t, setup{}), newWorld(t, setup{receivers: 1, controllers: 1})
	log := first.auditFromNow()
	first.configure("serve-namespaces", first.ci)
	first.must(first.Narrow(first.ctx, first.ci))
	first.startReceiver(false)
	first.startController(false)
	for _, w := range []*world{first, second} {
		w.claimed()
		sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("own", "push")})
		w.deliver(delivery, http.StatusAccepted)
		w.checkReaches(sha, checkName("own"), "success", soon)
		w.settled(soon)
	}
	first.must(first.names(first.ci, "rival", second.repo.HTMLURL))
	first.owns(first.ci, "rival")
	noCalls(log, first, second)
	if said := first.log(first.controller()); strings.Contains(said, "does not let") {
		t.Errorf("the preflight lacks rights: %s", said)
	}

	sha, delivery := first.push(map[string]string{".tekton/push.yaml": pipeline("moves", "push", held)})
	first.deliver(delivery, http.StatusAccepted)
	first.checkReaches(sha, checkName("moves"), "in_progress", soon)
	running := first.created(sha)
	first.configure("serve-namespaces", first.Namespace)
	first.eventually(soon, "the Repository says that nobody serves it", func() error { return first.urlIs("NamespaceNotServed") })
	first.eventually(soon, "its claim is released", func() error {
		if claim := first.claim(first.git.page()); claim == nil || claim.Status.ReleasedAt == nil {
			return fmt.Errorf("it is %+v", claim)
		}
		return nil
	})
	second.configure("serve-namespaces", second.ci+", "+first.ci)
	first.eventually(soon, "the second installation serves it", func() error { return first.urlIs("Owned") })
	first.deliver(first.again(), http.StatusOK)
	first.release(running)
	first.checkReaches(sha, checkName("moves"), "success", soon)
	first.settled(soon)
	if n := len(first.events()); n != 2 {
		t.Errorf("the first installation has recorded %d events, want its two", n)
	}
	first.invariants()
}

// urlIs checks the reason of the condition URL.
func (w *world) urlIs(reason string) error {
	repository, err := w.Plumbline.PipelinesascodeV1alpha1().Repositories(w.ci).Get(w.ctx, "app", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if c := repository.Status.GetCondition(pacv1alpha1.RepositoryURL); c == nil || c.Reason != reason {
		return fmt.Errorf("it is %+v", c)
	}
	return nil
}

// noCalls requires that no process of one of two worlds has made a call in the namespaces of the
// other.
func noCalls(log io.Reader, one, other *world) {
	one.t.Helper()
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var call auditEvent
		if json.Unmarshal(lines.Bytes(), &call) != nil || call.ObjectRef == nil {
			continue // the last line may be cut
		}
		for caller, callee := range map[*world]*world{one: other, other: one} {
			ours := strings.HasPrefix(call.User.Username, "system:serviceaccount:"+caller.Namespace+":")
			if in := call.ObjectRef.Namespace; ours && (in == callee.ci || in == callee.Namespace) {
				one.t.Errorf("%s: %s %s in %s", call.User.Username, call.Verb, call.ObjectRef.Resource, in)
			}
		}
	}
	one.must(lines.Err())
}
