// SPDX-License-Identifier: Apache-2.0

// Package credentials logs events in to their Git services.
//
// A Pool lives as long as the process. It opens a Session for each reconcile of an event, which
// reads the Repository and the Secrets that the event needs and logs in once. Calls limits how many
// sessions call a Git service at once.
//
// Secrets are read live whenever a session needs them, the App's at most every few seconds, so a
// changed one needs no restart. Plumbline may not list or watch Secrets. If an event waits because
// of its credentials, the Pool therefore stores digests of the Secrets that were used, reads these
// Secrets from time to time, and wakes the event when one has changed (B8, E15). It never stores a
// value. The digests are advice: a process that has none of an event, because it has just become
// the leader, tries it once.
//
// Errors have a class (pkg/fault). A problem that an administrator has to fix is an Operator fault
// with a message that says how. NamesSecret is true for its reason if a Secret has to be created or
// changed; the reason is ReasonRepositoryGone if the Repository that names the credentials is gone.
// If the API server or the Git service did not answer, the error has the class of that. No message
// contains a secret value.
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
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// ReasonRepositoryGone is the reason of a fault that says that the event's Repository was deleted
// or names another URL now.
const ReasonRepositoryGone = "RepositoryGone"

// Options configure a Pool. All but GlobalRepository and Wake are needed.
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
	// Cache may lag. A Repository that it does not have, or has with another URL, is read with
	// Repositories.
	Cache        paclisters.RepositoryLister
	Repositories pacclient.RepositoriesGetter
	// Calls limits the calls to Git services.
	Calls Calls
	Clock clock.PassiveClock
	// Wake enqueues an event after a time; nil does nothing.
	Wake func(event string, after time.Duration)
}

// Calls limits the calls to Git services.
type Calls struct {
	// Acquire lets an event call its Git service. It does not wait: if too many events call it, the
	// error is a Throttled fault. A session calls it once, before its first call, and release when
	// it ends.
	Acquire func(ctx context.Context, event *v1alpha1.GitEvent) (release func(), err error)
	// Observe is called after each call to an event's Git service; it may be nil.
	Observe func(event *v1alpha1.GitEvent, a provider.CallResult)
}

// Pool opens sessions. It stores which events wait for an administrator to fix their credentials,
// and which logins the Git services have just refused. Safe for concurrent use.
type Pool struct {
	options  Options
	waiting  *waiting
	refusals refusals
	expiries recent.Map[token, time.Time]
	absent   absence
	app      appSecret
}

// New returns an empty Pool.
func New(o Options) *Pool {
	if o.Calls.Observe == nil {
		o.Calls.Observe = func(*v1alpha1.GitEvent, provider.CallResult) {}
	}
	if o.Wake == nil {
		o.Wake = func(string, time.Duration) {}
	}
	return &Pool{options: o, waiting: newWaiting()}
}

// Waiting returns how many events wait for an administrator, as far as this process knows.
func (p *Pool) Waiting() int { return p.waiting.len() }

// NamesSecret reports whether a wait with this reason ends when a Secret is changed.
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
