// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// GitEventStatus is what Plumbline found out about an event and did for it.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.plan) || !has(oldSelf.plan.manifests) || has(self.plan) && has(self.plan.manifests) || has(self.phase) && self.phase == 'Settled'",message="the manifests of a plan are kept until the event is settled"
type GitEventStatus struct {
	// Status has the conditions Planned, Created, Reported (aggregated in Ready) and Annotated (not
	// aggregated).
	duckv1.Status `json:",inline"`
	// "Settled" when nothing is left to do. Controllers watch only unsettled events.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// What Plumbline decided to do about the event. The plan sets it. It changes
	// later only to Refused, when it turns out that none of the runs can be created.
	// +optional
	Disposition Disposition `json:"disposition,omitempty"`
	// A summary of the status for people: "Succeeded", "Failed: 1 of 3", "Running", "Waiting:
	// <reason>", "Ignored: <reason>". It is derived from the other fields; programs read those.
	// +optional
	Outcome string `json:"outcome,omitempty"`
	// The event's branch, tag or pull request, for people: "main", "tags/v1" or "#12".
	// +optional
	Ref string `json:"ref,omitempty"`
	// What Plumbline will do, stored before it does anything.
	// +optional
	Plan *Plan `json:"plan,omitempty"`
	// The planned PipelineRuns, in the order in which they were decided.
	// +optional
	Runs []Run `json:"runs,omitempty"`
	// The checks that were reported or are about to be.
	// +optional
	Checks []Check `json:"checks,omitempty"`
	// The answer to the command, if the event is a command by a user who may give it;
	// unset for every other event.
	// +optional
	Reply *Reply `json:"reply,omitempty"`
	// The comment on the pull request that lists the errors in the files of .tekton, or that says
	// that they are fixed; unset if the event has nothing to say there.
	// +optional
	Validation *CommentState `json:"validation,omitempty"`
	// The comment on the pull request that lists its failed pipelines (comment_strategy
	// "on_failure"); unset if the event has nothing to say there.
	// +optional
	Failures *CommentState `json:"failures,omitempty"`
	// The steps that wait, and when each is retried.
	// +optional
	// +listType=map
	// +listMapKey=step
	Waits []Wait `json:"waits,omitempty"`
	// How many reconciles of the event have panicked. Counting stops at the number at
	// which an event without a plan is given up.
	// +optional
	Panics int32 `json:"panics,omitempty"`
	// How many attempts to plan the event were started and never finished, because the
	// process was killed. It is counted for events that another process may have worked on.
	// Counting stops at the number at which the event is given up.
	// +optional
	Begun int32 `json:"begun,omitempty"`
	// When phase became Settled.
	// +optional
	SettledAt *metav1.Time `json:"settledAt,omitempty"`
	// True while a paused process may still create a secret for the settled event.
	// The sweep deletes such secrets for a while and then clears the field.
	// +optional
	LateSecrets bool `json:"lateSecrets,omitempty"`
	// True when the event settled although the results of its checks could not be
	// reported. Checks then has the checks that are still pending. The sweep reports them when it
	// can and then clears the field.
	// +optional
	Unreported bool `json:"unreported,omitempty"`
}

// Phase says whether an event still needs a controller.
type Phase string

// PhaseSettled is the only phase with a name: nothing is left to do.
const PhaseSettled Phase = "Settled"

// OpenEvents is the field selector of unsettled events.
const OpenEvents = "status.phase!=" + string(PhaseSettled)

// Disposition is what Plumbline decided to do about an event.
type Disposition string

const (
	// DispositionIgnored means that no pipeline matches this event.
	DispositionIgnored Disposition = "Ignored"
	// DispositionRuns means that PipelineRuns were planned.
	DispositionRuns Disposition = "RunsCreated"
	// DispositionPending means that the event waits for the approval of a user who may start runs.
	// One queued check says so.
	DispositionPending Disposition = "PendingApproval"
	// DispositionSkipped means that the author requested no CI. One concluded check says so.
	DispositionSkipped Disposition = "Skipped"
	// DispositionRefused means that the event cannot be served: its namespace or Repository is
	// gone, or it was given up.
	DispositionRefused Disposition = "Refused"
	// DispositionCancels means that the event cancels runs of other events of its pull request or
	// commit, and starts nothing.
	DispositionCancels Disposition = "Cancels"
	// DispositionSuperseded means that Git had a newer commit in its place before anything was
	// created for it.
	DispositionSuperseded Disposition = "Superseded"
)

// One planned PipelineRun and its result.
type Run struct {
	// The author's name or generateName as written. The check is named after it.
	Pipeline string `json:"pipeline"`
	// The namespace of the PipelineRun.
	Namespace string `json:"namespace"`
	// The name of the PipelineRun. It is the same each time that the run is planned. Another
	// attempt has another name.
	Name string `json:"name"`
	// A sentence about how the run was planned, which every report of the run repeats.
	// +optional
	Note string `json:"note,omitempty"`
	// The name of the git-auth secret that the run mounts; empty if there is none.
	// +optional
	Secret string `json:"secret,omitempty"`
	// When the secret of an unfinished run gets a new token: well before the last
	// one expires. Unset means at once.
	// +optional
	SecretRenewAt *metav1.Time `json:"secretRenewAt,omitempty"`
	// True when the PipelineRun is an owner of its secret, next to the Repository.
	// The secret then stays when the Repository is deleted.
	// +optional
	SecretOwned bool `json:"secretOwned,omitempty"`
	// True while something that the pipeline refers to could not be read. The run is
	// selected, but its PipelineRun is not known yet.
	// +optional
	Unresolved bool `json:"unresolved,omitempty"`
	// The UID of the PipelineRun, set when it is known to exist.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// Set when the author's definition was refused before or at creation. Nothing else
	// sets it.
	// +optional
	Refused *Refusal `json:"refused,omitempty"`
	// The terminal state. It is stored here so that it survives when the PipelineRun is
	// deleted.
	// +optional
	Result *Result `json:"result,omitempty"`
	// How many finished runs of the pipeline its author wants to keep. It is -1 if
	// the annotation is not a number of runs; then all are kept. It is unset without the
	// annotation, and for a settled event.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	MaxKeepRuns *int64 `json:"maxKeepRuns,omitempty"`
	// True if the run cancels older runs of the same pipeline and pull request,
	// branch or tag.
	// +optional
	CancelInProgress bool `json:"cancelInProgress,omitempty"`
	// The values of params that the links to the run use, for the console templates of the
	// ConfigMap. Values from Secrets are left out.
	// +optional
	LinkParams map[string]string `json:"linkParams,omitempty"`
	// True if the PipelineRun has neither the label nor the annotation
	// pipelinesascode.tekton.dev/state, because Pipelines-as-Code runs next to Plumbline and
	// adopts each PipelineRun that has them.
	// +optional
	WithoutState bool `json:"withoutState,omitempty"`
	// The digest of the metadata that was last written to the PipelineRun.
	// +optional
	Patched string `json:"patched,omitempty"`
	// How many times another PipelineRun is created because the cluster made one fail. 0 means
	// never.
	// +optional
	// +kubebuilder:validation:Minimum=0
	InfrastructureRetries int32 `json:"infrastructureRetries,omitempty"`
	// The earlier attempts, which failed because of the cluster. The check keeps the name of the
	// first.
	// +optional
	Attempts []FailedAttempt `json:"attempts,omitempty"`
}

// Creatable reports whether the PipelineRun is still to be created.
func (r *Run) Creatable() bool {
	return !r.Unresolved && r.UID == "" && r.Refused == nil && r.Result == nil
}

// Skipped reports whether there was no PipelineRun to create. Its check only shows that the
// pipeline was not started, or what the plan has waited for.
func (r *Run) Skipped() bool { return r.Result != nil && r.Result.Outcome == OutcomeSkipped }

// Refusal says why the author's definition was refused.
type Refusal struct {
	// One word for machines ("BadYAML", "AdmissionDenied").
	Reason string `json:"reason"`
	// The original text of the error.
	Message string `json:"message"`
}

// Outcome is how a PipelineRun ended.
type Outcome string

const (
	// OutcomeSucceeded means Succeeded=True.
	OutcomeSucceeded Outcome = "Succeeded"
	// OutcomeFailed means Succeeded=False for any reason but cancellation.
	OutcomeFailed Outcome = "Failed"
	// OutcomeCancelled means Succeeded=False because the run was cancelled or stopped, or that it
	// was cancelled before it was created.
	OutcomeCancelled Outcome = "Cancelled"
	// OutcomeDeleted means that the PipelineRun was deleted before it finished.
	OutcomeDeleted Outcome = "Deleted"
	// OutcomeSkipped means that there was nothing to run: the check only showed a wait, which has
	// ended, or the pipeline's annotations do not match (ReasonUnmatched).
	OutcomeSkipped Outcome = "Skipped"
)

// ReasonUnmatched is the reason of the result of a pipeline that the event does not start and that
// has a check (settings.unmatched). The message is the clause that does not match.
const ReasonUnmatched = "Unmatched"

// Verdict is who has to act on a failure. A Verdict that a version does not know counts as
// VerdictUnknown.
type Verdict string

const (
	// VerdictAuthor means that the change or the pipeline is the cause.
	VerdictAuthor Verdict = "author"
	// VerdictInfrastructure means that the cluster or a service that it needs is the cause.
	VerdictInfrastructure Verdict = "infrastructure"
	// VerdictUnknown means that the status of the PipelineRun does not tell.
	VerdictUnknown Verdict = "unknown"
)

// Result is the terminal state of a PipelineRun.
type Result struct {
	// How the PipelineRun ended.
	Outcome Outcome `json:"outcome"`
	// The reason of Tekton's condition Succeeded.
	// +optional
	Reason string `json:"reason,omitempty"`
	// The message of Tekton's condition Succeeded.
	// +optional
	Message string `json:"message,omitempty"`
	// When the PipelineRun started.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// When the PipelineRun finished.
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
	// The body of the final report (task table, diagnosis).
	// +optional
	Text string `json:"text,omitempty"`
	// What failed, in one line of plain text, for Git services that show only one line.
	// +optional
	Brief string `json:"brief,omitempty"`
	// Whose fault a failure is: author, infrastructure or unknown. It is empty if the PipelineRun
	// did not fail, and in results that an older version stored.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`
	// What failed, in a few words of plain text: the title of the check is made from it.
	// +optional
	Cause string `json:"cause,omitempty"`
	// The log of the steps that failed; unset if it is not to be shown.
	// +optional
	Log *RunLog `json:"log,omitempty"`
}
