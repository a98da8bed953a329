// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// process is a process that goes on, unlike those of env.reconcile.
type process struct {
	*env
	r     *Reconciler
	woken int
}

func newProcess(w *env) *process {
	p := &process{env: w, r: w.reconciler()}
	p.r.process.Wake = func(_ string, after time.Duration) {
		if after == 0 {
			p.woken++
		}
	}
	return p
}

func (p *process) run() { _ = p.r.Reconcile(p.t.Context(), system+"/push-1") }

// looks polls the Secrets once, and requires that this wakes the event or not.
func (p *process) looks(what string, wakes bool) {
	p.t.Helper()
	p.woken = 0
	p.r.credentials.LookOnce(p.t.Context(), p.r.leadsOpen)
	if got := p.woken > 0; got != wakes {
		p.t.Errorf("%s: the event is woken: %v, want %v", what, got, wakes)
	}
}

// makes requires how often one reconcile makes a call.
func (p *process) makes(what, call string, want int) {
	p.t.Helper()
	before := p.count(call)
	p.run()
	if got := p.count(call) - before; got != want {
		p.t.Errorf("%s: %d times %q, want %d", what, got, call, want)
	}
}

func (w *env) waitsWith() (reason, message string) {
	w.t.Helper()
	waits := w.event().Status.Waits
	if len(waits) != 1 {
		w.t.Fatalf("waits %+v, want one", waits)
	}
	return waits[0].Reason, waits[0].Message
}

func (w *env) storeApp(change func(*corev1.Secret)) {
	w.t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "app"},
		Data:       map[string][]byte{keyAppID: []byte("1"), keyPrivateKey: []byte("pem")},
	}
	change(secret)
	resource := corev1.SchemeGroupVersion.WithResource("secrets")
	_ = w.kube.Tracker().Delete(resource, system, "app")
	w.must(w.kube.Tracker().Create(resource, secret, system))
}

// B8: an event that waits for a Secret is not retried before its time, unless the Secret changes:
// then it goes on.
func TestChangedSecretRetriesWaitingEvents(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.must(w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), system, "app"))
	p := newProcess(w)
	p.run()
	if reason, message := w.waitsWith(); reason != fault.ReasonCredentialsMissing ||
		!strings.Contains(message, "secret plumbline/app does not exist: create it") {
		t.Fatalf("waits for %s: %s", reason, message)
	}
	p.makes("before its time", "get secrets", 0)
	p.looks("it is still missing", false)
	w.hook = always("get secrets", apierrors.NewServiceUnavailable("down"))
	p.looks("nobody can tell", false)
	w.hook = nil

	w.storeApp(func(s *corev1.Secret) { delete(s.Data, keyPrivateKey) })
	p.looks("it exists", true)
	p.makes("it exists", "get secrets", 1)
	if reason, message := w.waitsWith(); reason != fault.ReasonCredentialsMissing ||
		!strings.Contains(message, "key "+keyPrivateKey) {
		t.Fatalf("waits for %s: %s", reason, message)
	}
	p.makes("before its time", "get secrets", 0)
	w.storeApp(func(s *corev1.Secret) { delete(s.Data, keyPrivateKey); s.Labels = map[string]string{"touched": "yes"} })
	p.looks("only its labels changed", false)

	w.storeApp(func(s *corev1.Secret) { s.Data[keyAppID] = []byte("x") })
	p.looks("it has both keys", true)
	p.run()
	if reason, _ := w.waitsWith(); reason != fault.ReasonCredentialsInvalid {
		t.Fatalf("waits for %s", reason)
	}
	w.storeApp(func(*corev1.Secret) {})
	p.looks("it is as it should be", true)
	p.run()
	if len(w.runs()) != 1 {
		t.Errorf("%d runs, want one: %+v", len(w.runs()), w.event().Status)
	}
	p.makes("a look", "get secrets", 0)
	before := w.count("get secrets")
	if p.looks("nobody waits any more", false); w.count("get secrets") != before {
		t.Error("a Secret is read that no event waits for")
	}
}

// A new process knows nothing of earlier refusals: it retries once, and then knows.
func TestNewLeaderRetriesAWaitingEventOnce(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.must(w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), system, "app"))
	newProcess(w).run()
	p := newProcess(w)
	p.makes("it begins", "get secrets", 1)
	p.makes("it knows", "get secrets", 0)
	before := w.event().Status
	w.storeApp(func(*corev1.Secret) {})
	p.looks("the Secret is there", true)
	if len(before.Waits) != 1 || p.event().Status.Waits[0].Since != before.Waits[0].Since {
		t.Error("a look changed what is recorded")
	}
}

// E15: the message about refused credentials is the same for each event. The service is not called
// again with the same credentials for a while, and at once with others.
func TestRefusedCredentialsAreRetriedOnce(t *testing.T) {
	t.Parallel()
	const words = "the Git service refuses the token in secret plumbline/app"
	w := newEnv(t, helloFile("hello"))
	w.git.err = fault.Operatorf(fault.ReasonCredentialsRefused, words)
	p := newProcess(w)
	asks := func(what string, want int) {
		t.Helper()
		before := len(w.git.read) + w.git.heads
		p.run()
		if got := len(w.git.read) + w.git.heads - before; (got > 0) != (want > 0) {
			t.Errorf("%s: %d calls, want %d", what, got, want)
		}
		if reason, message := w.waitsWith(); reason != fault.ReasonCredentialsRefused || message != words {
			t.Errorf("%s: waits for %s: %s", what, reason, message)
		}
	}
	asks("first", 1)
	asks("before its time", 0)
	p.repositoryChanged()
	asks("another event at the same moment", 0)
	w.clock.SetTime(w.clock.Now().Add(credentials.RefusalLife))
	p.repositoryChanged()
	asks("later", 1)
	w.storeApp(func(s *corev1.Secret) { s.Data[keyPrivateKey] = []byte("other") })
	p.looks("rotated", true)
	asks("rotated", 1)
	w.git.err = nil
	w.storeApp(func(s *corev1.Secret) { s.Data[keyPrivateKey] = []byte("right") })
	p.looks("rotated again", true)
	p.run()
	if len(w.runs()) != 1 {
		t.Errorf("%d runs, want one: %+v", len(w.runs()), w.event().Status)
	}
}

// repositoryChanged reports a change of the Repository to the process.
func (p *process) repositoryChanged() {
	p.r.credentials.RepositoryChanged(nil, repository(),
		func() []*v1alpha1.GitEvent { return []*v1alpha1.GitEvent{p.event()} })
}

func elsewhere(namespace string) *pacv1alpha1.Repository {
	r := repository()
	r.Namespace, r.Spec.GitProvider = namespace, &pacv1alpha1.GitProvider{Type: "gitlab"}
	return r
}

// A change of a Repository, or of the global one, wakes the events that wait, too.
func TestChangedRepositoryWakesItsWaitingEvents(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.git.err = fault.Operatorf("RepositoryNotReadable", "no")
	p := newProcess(w)
	p.run()
	// its cache has the wait
	p.r = func() *Reconciler { r := w.reconciler(); r.process.Wake = p.r.process.Wake; return r }()
	global := &pacv1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "pipelines-as-code"}}
	same, changed := global.DeepCopy(), global.DeepCopy()
	same.Status.ObservedGeneration, changed.Spec.GitProvider = 1, &pacv1alpha1.GitProvider{Type: "gitlab"}
	for _, test := range []struct {
		what          string
		before, after any
		wakes         bool
	}{
		{"only its status changed", global, same, false},
		{"its spec changed", global, changed, true},
		{"it was created", nil, global, true},
		{"its own changed", repository(), elsewhere(tenant), true},
		{"another one changed", repository(), elsewhere("other"), false},
	} {
		p.woken = 0
		p.r.repositoryChanged(test.before, test.after)
		if (p.woken > 0) != test.wakes {
			t.Errorf("%s: woken %d times", test.what, p.woken)
		}
	}
	w.git.err = nil
	p.run()
	if len(w.runs()) != 1 {
		t.Errorf("%d runs, want one", len(w.runs()))
	}
}
