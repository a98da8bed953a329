// SPDX-License-Identifier: Apache-2.0

// Package deps has what the reconciler of GitEvents needs from outside: clients, caches, and the
// decisions of cmd/controller.
package deps

import (
	"context"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	pacclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/pipelinesascode/v1alpha1"
	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/plumbline/v1alpha1"
	paclisters "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/web"
)

// Cluster is how the reconciler reaches the API server.
type Cluster struct {
	Plumbline    plumblineclient.PlumblineV1alpha1Interface
	PaC          pacclient.PipelinesascodeV1alpha1Interface
	Tekton       Tekton
	Kube         Kube
	Open         Open
	Repositories paclisters.RepositoryLister
	Claims       listers.RepositoryClaimLister
	// Runs is the cache of PipelineRuns (RunInformer).
	Runs     cache.KeyListerGetter
	Recorder record.EventRecorder
	Clock    clock.PassiveClock
}

// Open is the cache of the unsettled events, trimmed.
type Open struct {
	listers.GitEventLister
	// Of returns the events of a Repository, in no order. They are shared: do not change them.
	Of func(namespace, name string) []*v1alpha1.GitEvent
	// From returns the events of an Origin (RepositoryReference), also of deleted Repositories.
	From func(origin string) []*v1alpha1.GitEvent
}

// Options are what cmd/controller decides.
type Options struct {
	// Namespace is Plumbline's own.
	Namespace string
	// Version is written to the version label of PipelineRuns.
	Version string
	// Providers are the Git services, by name.
	Providers map[string]provider.Provider
	// Remote fetches what annotations refer to by web address or by name on a hub.
	Remote *web.Client
	// AppSecret is the name of the Secret with the GitHub App's credentials, in Namespace.
	AppSecret string
	// GlobalRepository is the name of the Repository in Namespace whose settings complete those of
	// all others; it need not exist, and no Repository does so when the name is empty.
	GlobalRepository string
	// Workers is the number of events reconciled at once; namespaces and Git hosts have shares of
	// them (pkg/flowcontrol/fairqueue).
	Workers int
	// Identity is this process's name. No other process ever has it; a restart is another process.
	Identity string
	// Budget is what unsettled events use.
	Budget *quota.Ledger
	// Times may be zero: then each is its constant.
	Times Times
}

// Process is what a reconciler needs from the process that it runs in.
type Process struct {
	// Settings adds the configuration to a context.
	Settings interface {
		ToContext(ctx context.Context) context.Context
	}
	// Wake enqueues an event, in addition to what a reconcile returns.
	Wake func(event string, after time.Duration)
	// Holds reports whether this process holds the lease of an event; nil means always. Calls that
	// others may notice depend on it.
	Holds func(event string) bool
}

// Times are the durations that tests shorten.
type Times struct {
	// OperatorRetry is how soon the controller retries what an operator must fix; 0 means
	// fault.OperatorRetry.
	OperatorRetry time.Duration
	// CredentialLook is how often the controller reads the Secrets that events wait for; 0 means
	// credentials.Look.
	CredentialLook time.Duration
	// LateReports is how long after a takeover another process's post may take effect; 0 is
	// report.LateReports.
	LateReports time.Duration
	// CloseWindow is how long an event that closes a pull request stays unsettled for older ones; 0
	// is cancel.Window.
	CloseWindow time.Duration
}
