// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// Session gives one reconcile access to the Git service of its event. It is for one goroutine.
type Session struct {
	pool   *Pool
	event  *v1alpha1.GitEvent
	config *config.Config

	client   *provider.Client                 // connected on first use
	loginErr error                            // why it could not be
	release  func()                           // of Calls.Acquire; nil until it is called
	asked    asked                            // about newer commits
	saw      map[types.NamespacedName]content // the Secrets that were read
	secret   types.NamespacedName             // of them the one with the credentials of the Git service
	repeated bool                             // the Git service was not called, because it has just refused the same login
}

// asked has the questions that a session asks at most once; nil until one is needed.
type asked struct {
	newer func() (string, error) // what has superseded the event
	tip   func() (string, error) // what the event's pull request or branch is at
}

// Begin opens a session, without a call. The caller calls End. The session reads the event's spec
// whenever it needs it, so the caller may complete it meanwhile; it reads the status in End only.
func (p *Pool) Begin(event *v1alpha1.GitEvent, c *config.Config) *Session {
	return &Session{pool: p, event: event, config: c, saw: map[types.NamespacedName]content{}}
}

// Connect returns the authenticated view of the event's repository. A session logs in once: if that
// fails, later calls return the same error. Only a login that ran out of its context's time is
// tried again. If too many events call the Git service already, the error is that of Calls.Acquire.
func (s *Session) Connect(ctx context.Context) (*provider.Client, error) {
	if s.client != nil || s.loginErr != nil {
		return s.client, s.loginErr
	}
	client, err := s.connectOnce(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.loginErr = err
		}
		return nil, err
	}
	s.client = client
	return client, nil
}

func (s *Session) connectOnce(ctx context.Context) (*provider.Client, error) {
	spec := &s.event.Spec
	service, known := provider.For(s.pool.options.Providers, spec)
	if service.WithToken != nil && spec.InstallationID == 0 { // a request to /incoming
		hasWebhook, err := s.hasWebhook(ctx)
		if err != nil {
			return nil, err
		}
		if hasWebhook {
			service = *service.WithToken
		}
	}
	if !known {
		return nil, fault.Operatorf(reasonProviderUnknown, "this version serves no Git service %q", spec.Provider)
	}
	if s.release == nil {
		release, err := s.pool.options.Calls.Acquire(ctx, s.event)
		if err != nil {
			return nil, err
		}
		s.release = release
	}
	client, err := s.connectTo(ctx, service)
	if s.again(ctx, err) {
		client, err = s.connectTo(ctx, service)
	}
	return client, err
}

// connectTo logs in.
func (s *Session) connectTo(ctx context.Context, service provider.Provider) (*provider.Client, error) {
	spec := &s.event.Spec
	base, credentials, err := s.authenticate(ctx, service)
	if err != nil {
		return nil, err
	}
	credentials.Observe, credentials.Expires = s.observe, s.noteExpiry()
	if spec.Incoming != nil && spec.Project.ID == 0 {
		located, err := s.locate(ctx, service, base, credentials)
		if err != nil {
			return nil, err
		}
		spec.Locate(&located)
		credentials.InstallationID = located.InstallationID
	}
	client, err := service.Connect(ctx, base, spec.Project, credentials)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", spec.Host, err)
	}
	return &client, nil
}

// locate finds the project of a request to /incoming. The Repository must have the project's own
// URL: with http in place of https, for example, a project has a second URL, which is free although
// another namespace has claimed the first one.
func (s *Session) locate(
	ctx context.Context, service provider.Provider, base string, credentials provider.Credentials,
) (v1alpha1.Located, error) {
	spec := &s.event.Spec
	located, err := service.Locate(ctx, base, spec.Project, credentials)
	if err != nil {
		return located, fmt.Errorf("looking for %s: %w", spec.Project.URL, err)
	}
	if own := spec.Repository; !v1alpha1.SameURL(located.Project.URL, own.URL) {
		return located, fault.Operatorf(reasonAnotherURL,
			"the project of Repository %s/%s has the URL %s, not %s: correct spec.url, and send the request again",
			own.Namespace, own.Name, located.Project.URL, own.URL)
	}
	return located, nil
}

// observe is called after each call to the Git service.
func (s *Session) observe(a provider.CallResult) { s.pool.options.Calls.Observe(s.event, a) }

// Shared reports whether the session has logged in with a token from another namespace than the
// event's: that of the global Repository, which other tenants use as well. It is false for a GitHub
// App's credentials, which no run gets.
func (s *Session) Shared() bool {
	service, _ := provider.For(s.pool.options.Providers, &s.event.Spec)
	return service.BaseURL != nil && s.secret.Name != "" && s.secret.Namespace != s.event.Spec.Repository.Namespace
}

// Secret reads a Secret live and stores its digest: if the event has to wait because of it, the
// event is retried when the Secret has changed. The error is the API server's.
func (s *Session) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	if len(validation.IsDNS1123Subdomain(name)) != 0 {
		// It cannot exist, and a client cannot even request some of these names.
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
	}
	secret, err := s.pool.options.Kube.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if content, known := contentOf(secret, err); known {
		s.saw[types.NamespacedName{Namespace: namespace, Name: name}] = content
	}
	return secret, err
}

// Fixed reports whether the event's wait for an administrator, which has this reason, may be over
// early: a Secret that the event was tried with has changed, or it is unknown which it was tried
// with.
func (s *Session) Fixed(reason string) bool {
	return s.pool.waiting.fixed(s.event.Name, reason)
}

// Refused is called when a step needs an administrator. If the Git service has refused the
// credentials, other sessions get the same error for a while and do not use them. If this session
// got the error in that way, the time is not extended.
func (s *Session) Refused(f *fault.Error) {
	if f.Reason == fault.ReasonCredentialsRefused && !s.repeated {
		s.pool.refusals.note(s.attempt(), f, s.pool.options.Clock.Now())
	}
}

// attempt returns the login of this session.
func (s *Session) attempt() attempt {
	ref := s.event.Spec.Repository
	return attempt{
		secret:     s.secret,
		content:    s.saw[s.secret],
		repository: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name},
	}
}

// End releases what the session has acquired. It stores whether the event waits for an
// administrator, which is in its status.waits. It is called once, also after a panic.
//
//   - tried says that a step of this session needs an administrator.
//   - skipped says that a step that waits for an administrator was not tried, because it was too
//     early.
//
// If the event has used the Git service and does not wait any more, its credentials work. Then End
// wakes the events that wait because of the same ones.
func (s *Session) End(tried, skipped bool) {
	if s.release != nil {
		s.release()
	}
	known, wake := s.pool.waiting, s.pool.options.Wake
	if awaitsOperator(s.event) {
		login := slices.ContainsFunc(s.event.Status.Waits, func(w v1alpha1.Wait) bool { return NamesSecret(w.Reason) })
		if tried && known.add(s.event.Name, s.saw, login, skipped) {
			wake(s.event.Name, 0)
		}
		return
	}
	others := known.remove(s.event.Name)
	if s.client == nil {
		return // it did not use the Git service, so nothing is known about the credentials
	}
	for _, other := range others { // fixed elsewhere: at the Git service, for example
		known.retry(other)
		wake(other, 0)
	}
}
