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

// Two installations serve one namespace each, and the rights of the first end at its own. Both get
// a push. Neither makes a call in the other's namespace, and a Repository there with the same URL
// causes no conflict. Then the namespace moves to the second installation during a run of the
// first. The first finishes the run and starts nothing new; the Repository's status is the
// second's.
func TestNamespaceMovesToAnotherInstallation(t *testing.T) {
	t.Parallel()
	first, second := newEnvironment(t, setup{}), newEnvironment(t, setup{receivers: 1, controllers: 1})
	log := first.openAuditAtEnd()
	first.setConfig("serve-namespaces", first.ci)
	first.must(first.Narrow(first.ctx, first.ci))
	first.startReceiver(false)
	first.startController(false)
	for _, env := range []*environment{first, second} {
		env.awaitClaimed()
		sha, delivery := env.push(map[string]string{".tekton/push.yaml": pipeline("own", "push")})
		env.deliver(delivery, http.StatusAccepted)
		env.awaitCheck(sha, checkName("own"), "success", soon)
		env.awaitAllSettled(soon)
	}
	first.createRepositoryWithURL(first.ci, "rival", second.repo.HTMLURL)
	first.awaitURL(first.ci, "rival")
	requireNoCalls(log, first, second)
	if said := first.processLog(first.controller()); strings.Contains(said, "does not let") {
		t.Errorf("the preflight lacks rights: %s", said)
	}

	sha, delivery := first.push(map[string]string{".tekton/push.yaml": pipeline("moves", "push", held)})
	first.deliver(delivery, http.StatusAccepted)
	first.awaitCheck(sha, checkName("moves"), "in_progress", soon)
	running := first.awaitRunsCreated(sha)
	first.setConfig("serve-namespaces", first.Namespace)
	first.eventually(soon, "the Repository says that it is not served",
		func() error { return first.hasURLReason("NamespaceNotServed") })
	first.eventually(soon, "its claim is released", func() error {
		if claim := first.claim(first.git.page()); claim == nil || claim.Status.ReleasedAt == nil {
			return fmt.Errorf("it is %+v", claim)
		}
		return nil
	})
	second.setConfig("serve-namespaces", second.ci+", "+first.ci)
	first.eventually(soon, "the second installation serves it", func() error { return first.hasURLReason("Owned") })
	first.deliver(first.newDelivery(), http.StatusOK)
	first.releaseRuns(running)
	first.awaitCheck(sha, checkName("moves"), "success", soon)
	first.awaitAllSettled(soon)
	if n := len(first.events()); n != 2 {
		t.Errorf("the first installation has recorded %d events, want its two", n)
	}
	first.requireInvariants()
}

// hasURLReason returns nil when the condition URL has the reason.
func (env *environment) hasURLReason(reason string) error {
	repository, err := env.Plumbline.PipelinesascodeV1alpha1().Repositories(env.ci).Get(env.ctx, "app",
		metav1.GetOptions{})
	if err != nil {
		return err
	}
	if c := repository.Status.GetCondition(pacv1alpha1.RepositoryURL); c == nil || c.Reason != reason {
		return fmt.Errorf("it is %+v", c)
	}
	return nil
}

// requireNoCalls requires that no process of one of two environments has made a call in the
// namespaces of the other.
func requireNoCalls(log io.Reader, one, other *environment) {
	one.t.Helper()
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var call auditEvent
		if json.Unmarshal(lines.Bytes(), &call) != nil || call.ObjectRef == nil {
			continue // the last line may be cut
		}
		for caller, callee := range map[*environment]*environment{one: other, other: one} {
			ours := strings.HasPrefix(call.User.Username, "system:serviceaccount:"+caller.Namespace+":")
			if in := call.ObjectRef.Namespace; ours && (in == callee.ci || in == callee.Namespace) {
				one.t.Errorf("%s: %s %s in %s", call.User.Username, call.Verb, call.ObjectRef.Resource, in)
			}
		}
	}
	one.must(lines.Err())
}
