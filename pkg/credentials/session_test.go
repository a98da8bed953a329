// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// However many steps need the service, a session logs in once, and all of them get the same client
// or the same error.
func TestSessionLogsInOnce(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]error{"it may": nil,
		"it may not": fault.Operatorf(fault.ReasonCredentialsRefused, "no")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			r.refuse = refuse
			s := r.begin("e", "app", "git.example")
			first, err := s.Connect(t.Context())
			for range 3 {
				if again, errAgain := s.Connect(t.Context()); again != first || errAgain != err { //nolint:errorlint // the same one
					t.Errorf("another answer: %v %v", again, errAgain)
				}
			}
			if (err != nil) != (refuse != nil) || !errors.Is(err, refuse) || len(r.logins) != 1 ||
				count(&r.kube.Fake, "get", "secrets") != 1 {
				t.Errorf("%d logins with %d reads of a Secret, error %v", len(r.logins), count(&r.kube.Fake, "get", "secrets"), err)
			}
		})
	}
}

// A login that ran out of the time of its step is retried by a later step, which has its own time.
// Otherwise a token would expire because a report took too long.
func TestLoginIsRetriedAfterATimeout(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	s := r.begin("e", "app", "git.example")
	defer s.End(false, false)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	r.refuse = over.Err()
	if _, err := s.Connect(over); err == nil {
		t.Fatal("logged in without any time")
	}
	r.refuse = nil
	if _, err := s.Connect(t.Context()); err != nil || r.inUse[s.event.Name] != 1 {
		t.Errorf("error %v, acquired %v: want a login without acquiring again", err, r.inUse)
	}
}

// A session acquires once, before its first login, and releases at its end, also if the login
// fails.
func TestSessionReleasesAtItsEnd(t *testing.T) {
	t.Parallel()
	busy := fault.Throttledf(fault.ReasonBusy, time.Minute, "too many events call this service")
	for name, refuse := range map[string]error{"logged in": nil,
		"refused": fault.Operatorf(fault.ReasonCredentialsRefused, "no")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			r.refuse = refuse
			first, second := r.begin("1", "app", "git.example"), r.begin("2", "app", "git.example")
			if len(r.inUse) != 0 {
				t.Fatal("a session acquires before it needs the Git service")
			}
			_, _ = first.Connect(t.Context())
			_, _ = first.Connect(t.Context())
			r.busy = busy
			if _, err := second.Connect(t.Context()); !errors.Is(err, busy) || len(r.logins) > 1 {
				t.Fatalf("the second got %v after %d logins, want the error of Acquire after one", err, len(r.logins))
			}
			if diff := cmp.Diff(map[string]int{"1": 1}, r.inUse); diff != "" {
				t.Error("acquired (-want +got):", diff)
			}
			first.End(false, false)
			second.End(false, false)
			if diff := cmp.Diff(map[string]int{"1": 0}, r.inUse); diff != "" {
				t.Error("after both have ended (-want +got):", diff)
			}
		})
	}
}

func TestUnknownGitService(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	_, err := r.begin("e", "gitea", "git.example").Connect(t.Context())
	if f := fault.Of(err); f == nil || f.Class != fault.Operator || f.Reason != "ProviderUnknown" || len(r.inUse) != 0 {
		t.Errorf("error %v, acquired %v: want an operator's wait without acquiring", err, r.inUse)
	}
}

// E15: a login that the service has refused for one event is not repeated for other events for a
// while. This holds for the same content of the Secret and the same repository.
func TestRefusedLoginIsNotRepeated(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	no := fault.Operatorf(fault.ReasonCredentialsRefused, "the Git service refuses the key")
	connect := func(what, name string, logins int) *Session {
		t.Helper()
		before := len(r.logins)
		s := r.begin(name, "app", "git.example")
		if name == "of another repository" {
			s.event.Spec.Repository.Name = "other"
		}
		if _, err := s.Connect(t.Context()); !errors.Is(err, no) || len(r.logins)-before != logins {
			t.Errorf("%s: error %v after %d logins, want the refusal after %d", what, err, len(r.logins)-before, logins)
		}
		s.Refused(no)
		s.End(false, false)
		return s
	}
	r.refuse = no
	connect("the first", "1", 1)
	connect("another event at once", "2", 0)
	connect("of another repository", "of another repository", 1)
	r.clock.SetTime(r.clock.Now().Add(RefusalLife - time.Second))
	connect("still", "3", 0)
	r.clock.SetTime(r.clock.Now().Add(time.Second)) // the repeated refusals have not extended it
	connect("later", "4", 1)
	r.store(secret(system, "app", map[string]string{keyAppID: "7", keyPrivateKey: "rotated"}))
	connect("rotated", "5", 1)

	r = newFixture(t)
	s := r.begin("e", "app", "git.example")
	s.Refused(fault.Operatorf(fault.ReasonForbidden, "no"))
	if r.refusals.of(s.attempt(), r.clock.Now()) != nil {
		t.Error("what is no refusal of credentials is taken for one")
	}
}

// missing and forbids are faults for an administrator. A changed Secret fixes missing only.
var (
	missing = fault.Operatorf(fault.ReasonCredentialsMissing, "no Secret")
	forbids = fault.Operatorf(fault.ReasonForbidden, "no right")
	outage  = fault.Transientf(fault.ReasonGitUnreachable, "no answer")
)

// Only an event that was tried and waits for an operator is stored.
func TestEventsThatWaitAreStored(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		waits []*fault.Error
		tried bool
		want  int
	}{
		"it goes on":                  {nil, false, 0},
		"it waits for the service":    {[]*fault.Error{outage}, false, 0},
		"it waits for a Secret":       {[]*fault.Error{outage, missing}, true, 1},
		"it waits for a right":        {[]*fault.Error{forbids}, true, 1},
		"it was not its time, so far": {[]*fault.Error{missing}, false, 0},
	} {
		r := newFixture(t)
		s := r.begin("e", "app", "git.example")
		waits(s, test.waits...)
		if s.End(test.tried, false); r.Waiting() != test.want || len(r.woken) != 0 {
			t.Errorf("%s: %d events are remembered, want %d; %v woke", name, r.Waiting(), test.want, r.woken)
		}
	}
}

// An event waits for the Secrets that its session has read. It may be retried early as soon as
// another session has seen one of them changed.
func TestFixed(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	if s := r.begin("e", "app", "git.example"); !s.Fixed(missing.Reason) || s.Fixed(forbids.Reason) {
		t.Error("a process that knows nothing of an event must try it once, if a Secret may be what it waits for")
	}
	try := func(name string, tried, skipped bool) {
		t.Helper()
		s := r.begin(name, "app", "git.example")
		if tried {
			_, err := s.Secret(t.Context(), tenant, "param")
			if !fault.Gone(err) {
				t.Fatal(err)
			}
		}
		waits(s, missing)
		s.End(tried, skipped)
	}
	try("e", true, false)
	if r.begin("e", "app", "git.example").Fixed(missing.Reason) {
		t.Error("nothing changed since it was tried")
	}
	r.store(secret(tenant, "param", map[string]string{"k": "v"}))
	s := r.begin("other", "app", "git.example")
	if _, err := s.Secret(t.Context(), tenant, "param"); err != nil {
		t.Fatal(err)
	}
	waits(s, forbids)
	s.End(true, false)
	if !r.begin("e", "app", "git.example").Fixed(missing.Reason) {
		t.Error("another event has seen the Secret changed, and this one must wait on")
	}
}

// A step reads a changed Secret for which another step of the same event waits. That step is still
// retried.
func TestSkippedStepIsRetriedAtOnce(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	session := func(skipped bool) {
		s := r.begin("e", "app", "git.example")
		_, _ = s.Secret(t.Context(), tenant, "param")
		waits(s, missing)
		s.End(true, skipped)
	}
	session(false)
	r.store(secret(tenant, "param", map[string]string{"k": "v"}))
	session(true)
	if diff := cmp.Diff([]string{"e"}, r.woken); diff != "" {
		t.Error(diff)
	}
}

// An event that has used the Git service and does not wait any more shows that its credentials
// work. So the events with the same credentials are woken.
func TestSuccessfulEventWakesOthersWithItsCredentials(t *testing.T) {
	t.Parallel()
	no := fault.Operatorf(fault.ReasonCredentialsRefused, "no")
	for name, test := range map[string]struct {
		waitedFor *fault.Error
		connects  bool
		wakes     bool
	}{
		"with the Git service": {no, true, true},
		"without it":           {no, false, false},
		"after it waited because of other things": {forbids, true, false},
	} {
		r := newFixture(t)
		r.refuse = no
		for _, event := range []string{"1", "2"} {
			s := r.begin(event, "app", event+".example")
			_, _ = s.Connect(t.Context())
			waits(s, test.waitedFor)
			s.End(true, false)
		}
		r.refuse = nil
		s := r.begin("1", "app", "1.example")
		if test.connects {
			if _, err := s.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		s.End(false, false)
		if got := len(r.woken) == 1 && r.woken[0] == "2"; got != test.wakes ||
			r.begin("2", "app", "2.example").Fixed(no.Reason) != test.wakes {
			t.Errorf("%s: %v woke", name, r.woken)
		}
	}
}

// A request to /incoming names a project by the URL of its Repository. Another URL of the same
// project may be free although a namespace has claimed the project.
func TestIncomingNeedsTheURLOfTheProject(t *testing.T) {
	for url, served := range map[string]bool{
		"https://git.example/acme/app": true, "https://git.example/Acme/app.git": true,
		"http://git.example/acme/app": false,
	} {
		r := newFixture(t)
		service := r.service()
		service.Locate = func(context.Context, string, v1alpha1.Project, provider.Credentials) (v1alpha1.Located, error) {
			return v1alpha1.Located{Project: v1alpha1.Project{ID: 1, URL: "https://git.example/acme/app"}}, nil
		}
		r.options.Providers["app"] = service
		s := r.begin("e", "app", "git.example")
		s.event.Spec.Incoming, s.event.Spec.Repository.URL = &v1alpha1.Incoming{}, url
		s.event.Spec.Project.ID = 0
		_, err := s.Connect(t.Context())
		if reason := fault.Of(err); served != (err == nil) || !served && reason.Reason != reasonAnotherURL {
			t.Errorf("%s: %v", url, err)
		}
		if len(r.logins) != 0 && !served {
			t.Errorf("%s: a client was made", url)
		}
	}
}
