// SPDX-License-Identifier: Apache-2.0

// Package plan decides what an event starts, and why not more: event in, runs out. It knows no
// cluster, clock or status and writes nothing. The controller, the command line and the tests call
// the same function.
//
// Make (make.go) is the entry point. It works in this order:
//
//   - command.go and commit.go read the command of a comment; rerun.go finds what a re-run request
//     is about.
//   - make.go completes the event from the Git service and reads the definitions.
//   - authorize.go asks pkg/authz whether the event may start runs; cancel.go and close.go plan
//     events that only cancel runs.
//   - choose.go decides about each definition: select.go matches its annotations, retest.go leaves
//     out what an earlier event has started, pair.go runs a push and its pull request once.
//   - prepare.go renders the selected definitions; size.go, toomany.go and work.go limit how much.
//
// facts.go reads what a decision depends on from the Git service, each thing once.
package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resolve"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
	"github.com/plumbline-ci/plumbline/pkg/plan/annotations"
	"github.com/plumbline-ci/plumbline/pkg/plan/references"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// Definitions is the directory in which authors keep their pipelines.
const Definitions = pipelinesascode.Definitions

// Input is what is planned. Make changes nothing in it except the cache Sets.
type Input struct {
	Event Event
	// Repository is the event's, completed by the global one.
	Repository *pacv1alpha1.Repository
	Config     *config.Config
	// Shared is true when the Git service is called with the token of the global Repository, which
	// belongs to no tenant.
	Shared bool
	// Version is Plumbline's version, for the labels of PipelineRuns.
	Version string
	// Earlier is the result of an earlier attempt that left decisions open; nil if there was none.
	Earlier *Earlier
	// Sets caches the definitions of the Repository's namespace that were read for earlier events;
	// nil caches nothing.
	Sets *Sets
}

// Sets caches parsed definitions for the plans of later events.
type Sets = resolve.Cache

// Event is the part of a GitEvent that is planned.
type Event struct {
	// Namespace and Name are the GitEvent's. All planned names are derived from Name.
	Namespace, Name string
	// Annotations are the GitEvent's: the trace that its runs continue, and which pull requests
	// found it.
	Annotations map[string]string
	Spec        *v1alpha1.GitEventSpec
}

// Earlier is what was planned before. It does not change: only its open decisions are decided now,
// at the same commits.
type Earlier struct {
	Commits
	Decisions []v1alpha1.Decision
	Runs      []Run
	// Bytes is the size of its stored manifests.
	Bytes int
	// Priority is its Plan.Priority.
	Priority *int32
}

// Sources read what planning depends on. Each is called only if a decision depends on it, and for
// each thing once. An error is never taken for an answer: a decision that depends on it stays open.
type Sources struct {
	Source Source
	// History may be nil for a push or pull request whose delivery is trusted.
	History History
	Access  Access
	// Serves returns nil if the event may start runs in its Repository's namespace. An Ignored
	// fault says why not; any other error means that it is not known. It is called before anything
	// is decided, with the event that History.Complete returned. If Serves is nil, every event is
	// served.
	Serves func(ctx context.Context, event *v1alpha1.GitEventSpec) error
	Remote
	Delivery
	Budget
	// Secret returns the value of a Secret in the Repository's namespace for a custom param.
	Secret func(ctx context.Context, ref template.SecretRef) (string, error)
}

// Remote reads web addresses in annotations. It may be empty when the configuration does not allow
// references.
type Remote struct {
	// OwnAddresses reads in place of Addresses for the repository's own code (authz.Own), and may
	// read other repositories, too; nil is Addresses.
	Addresses, OwnAddresses references.Addresses
	Web                     references.Web
	// Missing is called when the Git service shows nothing at one of its own web addresses. It
	// returns when to retry, 0 to accept that nothing is there. nil accepts that at once.
	Missing func(address string) (again time.Duration)
}

// Budget limits what planning may use of the process.
type Budget struct {
	// Reserve reserves memory for definitions and manifests of these sizes, or fails if there is
	// not enough. If it is nil, there is no limit.
	Reserve func(definitions, manifests int) error
	// Pause is called before rendering that exceeds an ordinary event's; work is the CPU time that
	// it takes. It returns when the work may be done, or an error if the plan must be made later.
	// If it is nil, there is no pause.
	Pause func(ctx context.Context, work time.Duration) error
	// AcceptLess reports whether the Git service has refused the same request for so long that a
	// smaller answer is accepted. If it is nil, that never happens.
	AcceptLess func(refused error) bool
}

// Delivery reads the parts of an event's delivery that its record does not contain, and earlier
// records.
type Delivery struct {
	// Comment returns the text of the event's comment. It is called for comments only.
	Comment func(ctx context.Context) (string, error)
	// Actor returns the user who caused the event, from its payload. It is called for pull requests
	// whose record does not contain it. If it is nil, the actor is not known.
	Actor func(ctx context.Context) (string, error)
	// Payload returns the delivery's body.
	Payload func(ctx context.Context) ([]byte, error)
	// Records returns the recorded events with the same subject (GitEventSpec.Subject), oldest
	// first, without the event itself. It is called for commands only; nil means that there are
	// none.
	Records func(ctx context.Context) ([]history.Record, error)
	// Explain returns what became of the pipelines of a commit: of all, or of those that are named.
	// It is called for /why only; nil means that nothing is known.
	Explain func(ctx context.Context, sha string, names []string) ([]v1alpha1.Decision, error)
	Past
}

// Past reads and coordinates with other events. Without it, re-runs cannot be planned.
type Past struct {
	// WaitForOthers returns nil when no other event of the subject (GitEventSpec.Subjects) is being
	// planned without knowing about this one. Earlier runs are read after that. It is called by
	// events that start what has failed. If it is nil, there are no other events.
	WaitForOthers func(ctx context.Context, subject string) error
	// RecordsOf returns the records of a subject (GitEventSpec.Subjects), oldest first, without the
	// event itself.
	RecordsOf func(ctx context.Context, subject string) ([]history.Record, error)
	// PaCRuns returns PipelineRuns that Pipelines-as-Code (PaC) started in the Repository's namespace,
	// the newest last. It is called at most once for an event. If it is nil, there are none.
	PaCRuns func(ctx context.Context, of history.PaCRunsOf) ([]history.PaCRun, error)
	// Cancels reports what a cancellation would cancel now. something is true if another event may
	// have something to cancel, running if it has started a run that is not finished. If Cancels is
	// nil, that is not known.
	Cancels func(ctx context.Context, event *v1alpha1.GitEventSpec, c *v1alpha1.Cancellation) (
		something, running bool, err error)
	// Now returns the time. Outdate prevents an unplanned event from storing what it has decided
	// until now: it has to read the records again, and then has the notes as annotations. Both are
	// called where RecordsOf is, for a push and a pull request of one commit.
	Now     func() time.Time
	Outdate func(ctx context.Context, record history.Record, notes map[string]string) error
	// RecordSubject stores the subject of the event before the Git service is asked about it, so
	// that an event that cancels it finds it.
	RecordSubject func(ctx context.Context, subject string) error
}

// Source reads the repository (provider.Source has the contract).
type Source interface {
	Head(ctx context.Context, event *v1alpha1.GitEventSpec) (git.Head, error)
	Files(ctx context.Context, sha, dir string) ([]git.File, error)
	File(ctx context.Context, sha, path string) ([]byte, error)
	Changed(ctx context.Context, event *v1alpha1.GitEventSpec) (git.Changes, error)
	DefaultBranch(ctx context.Context) (sha string, err error)
}

// History reads what a commit or an event belongs to (provider.History has the contract).
type History interface {
	Pulls(ctx context.Context, sha string) ([]git.Pull, error)
	Complete(ctx context.Context, event *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error)
	Versions(ctx context.Context, event *v1alpha1.GitEventSpec) ([]git.Version, error)
	Differ(ctx context.Context, earlier, later string, names ...string) ([]string, error)
}

// Access reads who may start a run (provider.Access has the contract). Owner reports whether the
// OWNERS of the default branch name the user.
type Access interface {
	CanWrite(ctx context.Context, user string) (bool, error)
	Member(ctx context.Context, user string) (bool, error)
	InTeam(ctx context.Context, team, user string) (bool, error)
	Owner(ctx context.Context, user string) (bool, error)
	Actor(ctx context.Context, event *v1alpha1.GitEventSpec, reported string) (string, error)
}

// Plan is what is to be done, and why.
type Plan struct {
	// Spec is the event's spec, completed with what its delivery does not say.
	Spec *v1alpha1.GitEventSpec
	Ending
	Commits
	Answer
	// Decisions has one entry for each definition, in the order of files and documents.
	Decisions []v1alpha1.Decision
	// Runs are the earlier runs, some of them completed, followed by the new ones.
	Runs []Run
	// Secrets has the values of the markers in the manifests.
	Secrets map[string]string
	// Priority is the value of the Repository's settings.queue_priority, nil if it has not been
	// evaluated.
	Priority *int32
	// Own is true if the event runs the repository's own code (authz.Own).
	Own bool
	// Wait is why decisions are open, nil if none is.
	Wait error
}

// Answer says whether a command gets a reply.
type Answer struct {
	// Command is the command for the reply, for people; empty if there is no reply.
	Command string
	// Untrusted is true if the user may give the command only because it is the user's own pull
	// request.
	Untrusted bool
}

// Commits are the commits that a plan is made at, and why they may run.
type Commits struct {
	// HeadSHA is the commit that runs and that checks are reported on. DefinitionSHA is the commit
	// at which the definitions are read, empty if none are.
	HeadSHA, DefinitionSHA string
	// Approval is set if HeadSHA may run although its author may not start runs.
	Approval *v1alpha1.Approval
	// EndsPending is true when HeadSHA may have a check that waits for approval, which this event
	// ends.
	EndsPending bool
}

// Ending is the result of the event as a whole.
type Ending struct {
	// Disposition is what is done about the event; Reason is one word for it, Message a sentence.
	Disposition     v1alpha1.Disposition
	Reason, Message string
	// Cancels says which runs of other events are cancelled, nil for most events.
	Cancels *v1alpha1.Cancellation
}

// Run is one PipelineRun that the event starts, or that is refused.
type Run struct {
	// Pipeline is the name of its check; Namespace and Name are the PipelineRun's.
	Pipeline, Namespace, Name string
	Shown
	// Secret is the name of its git-auth secret, empty if it gets none.
	Secret string
	// Refused says what its author has to fix, nil if nothing. With the reason
	// v1alpha1.ReasonUnmatched it says why the event does not start the pipeline.
	Refused *v1alpha1.Refusal
	// Unresolved is true while something that it refers to cannot be read; Wait says why, in the
	// attempt in which that happened.
	Unresolved bool
	Wait       error
	annotations.RunPolicy
	// Manifest is the PipelineRun in JSON, with markers for secret values. It is nil for a run that
	// is refused, unresolved or of an earlier attempt. It is not decoded, because an object may
	// take twelve times as much memory and a plan may have hundreds.
	Manifest []byte
}

// Shown is what reports of a run show of its plan.
type Shown struct {
	// Note is shown with its result.
	Note string
	// LinkParams are the params that links to the run use, without those of Secrets.
	LinkParams map[string]string
}

// Unmatched reports whether the event does not start the pipeline, so that no PipelineRun is
// created: the check says why.
func (r *Run) Unmatched() bool {
	return r.Refused != nil && r.Refused.Reason == v1alpha1.ReasonUnmatched
}

// PipelineRun decodes the manifest.
func (r *Run) PipelineRun() (*pipelinev1.PipelineRun, error) {
	run := &pipelinev1.PipelineRun{}
	if err := json.Unmarshal(r.Manifest, run); err != nil {
		return nil, fmt.Errorf("decoding PipelineRun %s: %w", r.Name, err)
	}
	return run, nil
}
