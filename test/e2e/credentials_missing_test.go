// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// B8: events whose Secret is missing wait, and the Repository's condition says what to do. While
// they wait the Secret is read once a poll, however many events there are. All of them continue
// within 30 s of its creation.
func TestMissingCredentialsWait(t *testing.T) {
	forEachKind(t, func(t *testing.T, on kind) {
		s := newSecretEnv(t, on)
		pushes := map[string]string{}
		for _, name := range []string{"one", "two", "three"} {
			pushes[name] = s.pushFile(pipeline(name, "push"))
		}
		s.updateSecret(nil)
		controller := s.startDefaultController()
		s.awaitWaiting(len(pushes), fault.ReasonCredentialsMissing)
		s.requireOneLookup(controller)
		s.awaitCondition(pacv1alpha1.RepositoryCredentials, "False "+fault.ReasonCredentialsMissing,
			fmt.Sprintf("secret %s/%s does not exist: create it", s.namespace, s.name))
		s.createSecret(nil)
		for name, sha := range pushes {
			s.requireSuccess(sha, name)
		}
		s.awaitCondition(pacv1alpha1.RepositoryCredentials, "True NoProblem", "")
		for _, event := range s.awaitAllSettled(soon) {
			s.requireReportedOnce(event.Name)
		}
		s.requireNotLeaked(s.data)
	})
}

// E15: the service refuses the credentials during a run. The Repository's condition says so and
// names a remedy. Within 30 s of the rotation every pending check is updated, and later pushes
// run.
func TestRefusedCredentialsRecover(t *testing.T) {
	forEachKind(t, func(t *testing.T, on kind) {
		s := newSecretEnv(t, on)
		s.startDefaultController()
		sha := s.pushFile(pipeline("open", "push", held))
		open := s.awaitRunsCreated(sha)
		s.awaitEvent(sha, "its first report is accepted", func(event *v1alpha1.GitEvent) error {
			if len(event.Status.Checks) != 1 || event.Status.Checks[0].Accepted == "" {
				return fmt.Errorf("checks %v", event.Status.Checks)
			}
			return nil
		})
		before, after := s.data, s.refuseCredentials()
		s.releaseRuns(open)
		s.awaitWaiting(1, fault.ReasonCredentialsRefused)
		later := s.pushFile(pipeline("later", "push"))
		s.awaitWaiting(2, fault.ReasonCredentialsRefused)
		s.awaitCondition(pacv1alpha1.RepositoryCredentials, "False "+fault.ReasonCredentialsRefused, s.namespace+"/"+s.name)

		s.updateSecret(after)
		s.requireSuccess(sha, "open")
		s.requireSuccess(later, "later")
		s.awaitCondition(pacv1alpha1.RepositoryCredentials, "True NoProblem", "")
		for _, event := range s.awaitAllSettled(soon) {
			s.requireReportedOnce(event.Name)
		}
		s.requireNotLeaked(before)
		s.requireNotLeaked(after)
	})
}

// requireOneLookup requires that the Secret is read repeatedly, and not more often than one event
// needs.
func (s *secretEnv) requireOneLookup(p *installation.Process) {
	s.t.Helper()
	asked := func() (n int) {
		for _, call := range p.Proxy.Calls() {
			if call.Is("get", "secrets") && call.Name == s.name && !isBackgroundCall(call) {
				n++
			}
		}
		return n
	}
	began, before := time.Now(), asked()
	s.eventually(soon, "the Secret is looked for", func() error {
		if n := asked() - before; n < 4 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	if n, most := asked()-before, 2*(2+int(time.Since(began)/credentialLook)); n > most {
		s.t.Errorf("the Secret was asked for %d times, want %d at most", n, most)
	}
}

// awaitWaiting waits until so many events wait with a reason, and all have the same message.
func (s *secretEnv) awaitWaiting(want int, reason string) {
	s.t.Helper()
	s.eventually(soon, fmt.Sprintf("%d events wait with %s", want, reason), func() error {
		events, texts := map[string]bool{}, map[string]bool{}
		for _, event := range s.events() {
			for _, wait := range event.Status.Waits {
				if wait.Reason == reason {
					events[event.Name], texts[wait.Message] = true, true
				}
			}
		}
		if len(events) < want || len(texts) != 1 {
			return fmt.Errorf("%d do, and say %v", len(events), texts)
		}
		return nil
	})
}

// requireNotLeaked requires that no value was reported anywhere.
func (s *secretEnv) requireNotLeaked(data map[string]string) {
	s.t.Helper()
	for key, value := range data {
		if key != "github-application-id" { // not secret
			lines := strings.Split(strings.TrimSpace(value), "\n")
			s.requireTextNotLeaked(lines[len(lines)/2])
		}
	}
}
