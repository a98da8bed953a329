// SPDX-License-Identifier: Apache-2.0

// Package credentials logs events in to their Git services.
//
// A Keeper lives as long as the process. It opens a Session for each reconcile of an event, which
// reads the Repository and the Secrets that the event needs and logs in once. Calls says
// how many sessions may call a Git service at once.
//
// Secrets are read live whenever a session needs them, the App's at most every few seconds, so a
// changed one needs no restart. Nobody may list or watch them. An event that cannot go on because
// of its credentials is therefore remembered with what it was tried with: the Keeper reads these
// Secrets again by name from time to time, and wakes the event when one has changed (B8, E15). What
// the Keeper remembers is advice. It keeps digests, never a Secret's value, and a process that
// knows nothing of an event, because it has just begun to lead it, tries it once.
//
// Errors have a class (pkg/fault). What somebody has to mend is an Operator fault with a message
// that says how; its reason is one that NamesSecret knows if the mending is to create or change a
// Secret, and ReasonRepositoryGone if the Repository that names the credentials is gone. What the
// API server or the Git service could not answer keeps the class of their answer. No message holds
// a secret value.
package credentials

import (
	"context"
	"time"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	pacclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/pipelinesascode/v1alpha1"
	paclisters "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// ReasonRepositoryGone is the reason of a fault that says that the event's Repository was deleted
// or names another URL now.
const ReasonRepositoryGone = "RepositoryGone"

// Options are what a Keeper works with. All but GlobalRepository and Wake are needed.
type Options struct {
	// Namespace is Plumbline's own.
	Namespace string
	// AppSecret is the name of the Secret with the GitHub App's credentials, in Namespace.
	AppSecret string
	// GlobalRepository is the name of the Repository in Namespace whose settings complete those of
	// all others; it need not exist, and no Repository does so when the name is empty.
	GlobalRepository string
	// Providers are the Git services, by name.
	Providers map[string]provider.Provider
	// Kube reads Secrets by name.
	Kube corev1client.SecretsGetter
	// Cache may lag. What it does not have is read with Repositories, and so is what it has of
	// another URL.
	Cache        paclisters.RepositoryLister
	Repositories pacclient.RepositoriesGetter
	// Calls limits the calls to Git services.
	Calls Calls
	Clock clock.PassiveClock
	// Wake lets an event be reconciled after a time, whatever else its queue knows of it. Nil wakes
	// nobody.
	Wake func(event string, after time.Duration)
}

// Calls limits the calls to Git services.
type Calls struct {
	// Acquire lets an event call its Git service. It does not wait: if too many events call it, the
	// error is a Throttled fault. A session calls it once, before its first call, and release when
	// it ends.
	Acquire func(ctx context.Context, event *v1alpha1.GitEvent) (release func(), err error)
	// Observe is called after each call to an event's Git service; it may be nil.
	Observe func(event *v1alpha1.GitEvent, a provider.Answered)
}

// Keeper remembers which events wait for somebody to mend their credentials, and what the Git
// services have just refused. Safe for concurrent use.
type Pool struct {
	options  Options
	waiting  *waiting
	refusals refusals
	absent   absence
	app      appSecret
}

// New returns a Keeper that remembers nothing yet.
func New(o Options) *Pool {
	if o.Calls.Observe == nil {
		o.Calls.Observe = func(*v1alpha1.GitEvent, provider.Answered) {}
	}
	if o.Wake == nil {
		o.Wake = func(string, time.Duration) {}
	}
	return &Pool{options: o, waiting: newWaiting()}
}

// Waiting returns how many events this process remembers as waiting for an operator.
func (k *Pool) Waiting() int { return k.waiting.len() }

// NamesSecret reports whether a wait with this reason ends when somebody changes a Secret.
func NamesSecret(reason string) bool {
	switch reason {
	case fault.ReasonCredentialsMissing,
		fault.ReasonCredentialsInvalid,
		fault.ReasonCredentialsRefused,
		fault.ReasonSecretMissing:
		return true
	}
	return false
}
