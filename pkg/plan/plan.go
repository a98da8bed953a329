// SPDX-License-Identifier: Apache-2.0

// Package plan decides what an event starts, and why not. It knows no cluster, no clock and no
// status, and writes nothing: the same function plans for the controller, for the command line and
// for tests.
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

// Definitions is the directory that authors keep their pipelines in.
const Definitions = pipelinesascode.Definitions

// Input is what is planned. Nothing in it is changed but what Sets keeps.
type Input struct {
	Event Event
	// Repository is the event's, completed by the global one.
	Repository *pacv1alpha1.Repository
	Config     *config.Config
	// Shared is true when the Git service is called with the token of the global Repository, which
	// is no tenant's.
	Shared bool
	// Version is Plumbline's, which PipelineRuns carry.
	Version string
	// Earlier is what an attempt before this one left open; nil when there was none.
	Earlier *Earlier
	// Sets has what was read of .tekton for events before, of the Repository's namespace. nil keeps
	// nothing.
	Sets *Sets
}

// Sets keeps definitions as they were read, for the plans of later events.
type Sets = resolve.Cache

// Event is a GitEvent as far as it matters: who it is and what happened.
type Event struct {
	// Namespace and Name are the GitEvent's. All names that are planned are made of Name.
	Namespace, Name string
	// Annotations are the GitEvent's: the trace that its runs continue, and the pull requests that
	// have found a push (plumbline.PullAnnotation).
	Annotations map[string]string
	Spec        *v1alpha1.GitEventSpec
}

// Earlier is what was planned before. It stands: only what is open in it is decided now, at the
// same commits.
type Earlier struct {
	Commits
	Decisions []Decision
	Runs      []Run
	// Bytes are what is kept of its manifests.
	Bytes int
	// Priority is what Plan.Priority was.
	Priority *int32
}

// Sources answer what a plan asks. Each is asked only if a decision depends on it, and each thing
// once. An error is never taken for an answer: what depends on it stays open.
type Sources struct {
	Source Source
	// History may be nil for a push or a pull request that whoever plans it vouches for.
	History History
	Access  Access
	// Serves is nil if the event may start something in its Repository's namespace: an Ignored
	// fault says why not, any other that it is not known. It is asked before anything is decided,
	// of the event as History completed it; nil is never.
	Serves func(ctx context.Context, event *v1alpha1.GitEventSpec) error
	// Addresses and Web read what annotations refer to by address; they may be nil when
	// configuration follows no references.
	Addresses references.Addresses
	Web       references.Web
	// Missing is asked when the Git service shows nothing at a web address of its own: it returns
	// how soon to look again, 0 when it is to be believed that nothing is there. nil believes at
	// once.
	Missing func(address string) (again time.Duration)
	Delivery
	Budget
	// Secret returns the value that a custom param refers to, in the Repository's namespace.
	Secret func(ctx context.Context, ref template.SecretRef) (string, error)
}

// Budget is what planning may take of the process.
type Budget struct {
	// Hold takes the memory for definitions of so many bytes and for the manifests that were made
	// of them, or says that others have it. nil has enough.
	Reserve func(definitions, manifests int) error
	// Rest is asked before work that is beyond what an ordinary event takes, by how long it takes a
	// core: it returns when the work may be done, or why the plan has to be made later. nil never
	// rests.
	Pause func(ctx context.Context, work time.Duration) error
	// Enough reports whether the Git service has refused the same thing for so long that something
	// less is taken for its answer. nil never does.
	AcceptLess func(refused error) bool
}

// Delivery is what the record of an event does not hold of its delivery, and what was recorded of
// those before it.
type Delivery struct {
	// Comment returns what the event's comment says. It is called for comments only.
	Comment func(ctx context.Context) (string, error)
	// Actor returns who caused the event, from its payload. It is called for pull requests whose
	// record does not say. nil is nobody.
	Actor func(ctx context.Context) (string, error)
	// Payload returns the delivery's body.
	Payload func(ctx context.Context) ([]byte, error)
	// Records returns what was recorded of the event's subject (GitEventSpec.Subject), oldest first
	// and without the event itself. It is asked for commands only; nil knows of nothing.
	Records func(ctx context.Context) ([]history.Record, error)
	Past
}

// Past is what became of events before. Re-runs are not planned without it.
type Past struct {
	// First returns nil once nothing else of a subject (GitEventSpec.Subjects) is decided without
	// knowing of this event, whose own plan comes after theirs then: what ran is read after that.
	// It is asked by events that start what has failed; nil has no others beside it.
	WaitForOthers func(ctx context.Context, subject string) error
	// RecordsOf returns the records of a subject (GitEventSpec.Subjects), the event itself left
	// out, oldest first.
	RecordsOf func(ctx context.Context, subject string) ([]history.Record, error)
	// Cancels reports what a cancellation would end now: something is true if another event may
	// have something to end, and running is true if it has started a run that has not ended. nil
	// does not know.
	Cancels func(ctx context.Context, event *v1alpha1.GitEventSpec, c *v1alpha1.Cancellation) (
		something, running bool, err error)
	// Now is the time. Outdate keeps an event from recording what it has decided until now: it
	// reads again what is on record first, and has the notes as annotations then. Both are asked
	// where RecordsOf is, of a push and a pull request of one commit.
	Now     func() time.Time
	Outdate func(ctx context.Context, record history.Record, notes map[string]string) error
	// About writes down which subject the event is of, before the Git service is asked how that is
	// now: what ends it finds the event then.
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

// History answers what a commit belongs to, and what an event is about (provider.History has the
// contract).
type History interface {
	Pulls(ctx context.Context, sha string) ([]git.Pull, error)
	Complete(ctx context.Context, event *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error)
	Versions(ctx context.Context, event *v1alpha1.GitEventSpec) ([]git.Version, error)
	Differ(ctx context.Context, earlier, later string, names ...string) ([]string, error)
}

// Access answers who may start a run (provider.Access has the contract). Owner reports whether
// OWNERS name the user, as they are on the default branch.
type Access interface {
	CanWrite(ctx context.Context, user string) (bool, error)
	Member(ctx context.Context, user string) (bool, error)
	InTeam(ctx context.Context, team, user string) (bool, error)
	Owner(ctx context.Context, user string) (bool, error)
	Actor(ctx context.Context, event *v1alpha1.GitEventSpec, told string) (string, error)
}

// Plan is what is to be done, and why.
type Plan struct {
	// Spec is the event's, with what its delivery did not say.
	Spec *v1alpha1.GitEventSpec
	Ending
	Commits
	Answer
	// Decisions has one for each definition, in the order of files and documents.
	Decisions []Decision
	// Runs are the earlier ones, some of them completed, and then the new ones.
	Runs []Run
	// Secrets is what the markers of the manifests stand for.
	Secrets map[string]string
	// Priority is what settings.queue_priority of the Repository gives, nil if it is not evaluated
	// (yet).
	Priority *int32
	// Wait says why decisions are open, nil when none is.
	Wait error
}

// Answer is whether a command is answered.
type Answer struct {
	// Command is the command that is to be answered, for people; empty when nobody is told
	// anything.
	Command string
	// Untrusted is true if the command's author may give it because the pull request is theirs, and
	// for no other reason.
	Untrusted bool
}

// Commits are what a plan is made at, and why that may run.
type Commits struct {
	// HeadSHA is the commit that is run and reported on, DefinitionSHA the one that the definitions
	// are read at: empty when none were read.
	HeadSHA, DefinitionSHA string
	// Approval is why HeadSHA may run although whoever wrote it may not start anything; nil if it
	// needs none.
	Approval *v1alpha1.Approval
	// EndsPending is true when HeadSHA may show that it waits for approval, which is over with this
	// event.
	EndsPending bool
}

// Ending is what becomes of the event as a whole.
type Ending struct {
	// Disposition is what becomes of the event; Reason is one word for it, Message a sentence.
	Disposition     v1alpha1.Disposition
	Reason, Message string
	// Cancels is what the event ends of others, nil for most.
	Cancels *v1alpha1.Cancellation
}

// Decision says whether one definition is for the event.
type Decision struct {
	// File and Document tell where it is defined, Pipeline what it is called there.
	File     string
	Document int
	Pipeline string
	// Open is true while it cannot be said.
	Open bool
	// Selected is why it was selected while it is open; Reason is the sentence for people.
	Selected, Reason string
}

// Run is one PipelineRun that the event starts, or that is refused.
type Run struct {
	// Pipeline is what its check is called, Namespace and Name are the PipelineRun's.
	Pipeline, Namespace, Name string
	// Note is told with its result.
	Note string
	// Secret is the name of its git-auth secret, empty when it gets none.
	Secret string
	// Refused says what its author has to mend, nil when nothing.
	Refused *v1alpha1.Refusal
	// Unresolved is true while what it refers to cannot be read; Wait says why, in the attempt that
	// met it.
	Unresolved bool
	Wait       error
	annotations.RunPolicy
	// Manifest is what is created, in JSON and with markers for secret values; nil for what is
	// refused, unresolved or of an earlier attempt. As an object it may take twelve times as much
	// memory, and a plan may have hundreds.
	Manifest []byte
}

// PipelineRun decodes the manifest.
func (r *Run) PipelineRun() (*pipelinev1.PipelineRun, error) {
	run := &pipelinev1.PipelineRun{}
	if err := json.Unmarshal(r.Manifest, run); err != nil {
		return nil, fmt.Errorf("decoding PipelineRun %s: %w", r.Name, err)
	}
	return run, nil
}
