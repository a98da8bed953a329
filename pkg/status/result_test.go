// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status/diagnosis"
)

// podMessage is what Tekton v1.15.0 writes when a webhook on pods refuses connections and the
// TaskRun refers to a Task.
const podMessage = `failed to create task run pod "build-abc-build": Internal error occurred: failed calling webhook "pods.policy.example.com": failed to call webhook: Post "https://policy.policy.svc:443/pods?timeout=10s": dial tcp 10.96.0.9:443: connect: connection refused. Maybe missing or invalid Task ci/build`

// reasons are all of Tekton v1.15.0's for a PipelineRun, and how a run ends that is False for it.
func reasons() map[pipelinev1.PipelineRunReason]v1alpha1.Outcome {
	const failed, cancelled = v1alpha1.OutcomeFailed, v1alpha1.OutcomeCancelled
	return map[pipelinev1.PipelineRunReason]v1alpha1.Outcome{
		pipelinev1.PipelineRunReasonStarted:                         failed,
		pipelinev1.PipelineRunReasonRunning:                         failed,
		pipelinev1.PipelineRunReasonSuccessful:                      failed,
		pipelinev1.PipelineRunReasonCompleted:                       failed,
		pipelinev1.PipelineRunReasonFailed:                          failed,
		pipelinev1.PipelineRunReasonCancelled:                       cancelled,
		pipelinev1.PipelineRunReasonPending:                         failed,
		pipelinev1.PipelineRunReasonTimedOut:                        failed,
		pipelinev1.PipelineRunReasonStopping:                        failed,
		pipelinev1.PipelineRunReasonTimedOutRunningFinally:          failed,
		pipelinev1.PipelineRunReasonCancelledRunningFinally:         cancelled,
		pipelinev1.PipelineRunReasonStoppedRunningFinally:           cancelled,
		pipelinev1.PipelineRunReasonCouldntGetPipeline:              failed,
		pipelinev1.PipelineRunReasonInvalidBindings:                 failed,
		pipelinev1.PipelineRunReasonInvalidWorkspaceBinding:         failed,
		pipelinev1.PipelineRunReasonInvalidTaskRunSpec:              failed,
		pipelinev1.PipelineRunReasonParameterTypeMismatch:           failed,
		pipelinev1.PipelineRunReasonObjectParameterMissKeys:         failed,
		pipelinev1.PipelineRunReasonParamArrayIndexingInvalid:       failed,
		pipelinev1.PipelineRunReasonCouldntGetTask:                  failed,
		pipelinev1.PipelineRunReasonParameterMissing:                failed,
		pipelinev1.PipelineRunReasonFailedValidation:                failed,
		pipelinev1.PipelineRunReasonCouldntGetPipelineResult:        failed,
		pipelinev1.PipelineRunReasonInvalidGraph:                    failed,
		pipelinev1.PipelineRunReasonCouldntCancel:                   failed,
		pipelinev1.PipelineRunReasonCouldntTimeOut:                  failed,
		pipelinev1.PipelineRunReasonInvalidMatrixParameterTypes:     failed,
		pipelinev1.PipelineRunReasonInvalidTaskResultReference:      failed,
		pipelinev1.PipelineRunReasonInvalidPipelineResultReference:  failed,
		pipelinev1.PipelineRunReasonRequiredWorkspaceMarkedOptional: failed,
		pipelinev1.PipelineRunReasonResolvingPipelineRef:            failed,
		pipelinev1.PipelineRunReasonResourceVerificationFailed:      failed,
		pipelinev1.PipelineRunReasonCreateRunFailed:                 failed,
		pipelinev1.PipelineRunReasonCELEvaluationFailed:             failed,
		pipelinev1.PipelineRunReasonInvalidParamValue:               failed,
		"SomethingTektonAddsLater":                                  failed,
		"":                                                          failed,
	}
}

// E1: success only from Succeeded=True, whatever the reason; nothing before the condition is
// terminal.
func TestResultOfByReason(t *testing.T) {
	for reason, whenFalse := range reasons() {
		for status, want := range map[corev1.ConditionStatus]v1alpha1.Outcome{
			corev1.ConditionTrue: v1alpha1.OutcomeSucceeded, corev1.ConditionFalse: whenFalse, corev1.ConditionUnknown: "",
			"": "",
		} {
			t.Run(fmt.Sprintf("%s=%s", reason, status), func(t *testing.T) {
				got := ResultOf(pipelineRun(succeeded(status, string(reason), "why")), nil, Links{}, diagnosis.Facts{}, 0)
				if want == "" {
					if got != nil {
						t.Fatalf("a run that has not ended has the result %+v", got)
					}
					return
				}
				if got == nil {
					t.Fatal("a run that has ended has no result")
				}
				if (got.Verdict != "") != (want == v1alpha1.OutcomeFailed) {
					t.Errorf("the outcome %s has the verdict %q", want, got.Verdict)
				}
				got.Text, got.Brief, got.Verdict, got.Cause = "", "", "", ""
				if diff := cmp.Diff(&v1alpha1.Result{Outcome: want, Reason: string(reason), Message: "why", StartedAt: at(0),
					CompletedAt: at(50)}, got); diff != "" {
					t.Errorf("ResultOf (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// E2: what spec.status asks for is no result.
func TestResultOfIgnoresSpecStatus(t *testing.T) {
	for _, asked := range []pipelinev1.PipelineRunSpecStatus{
		pipelinev1.PipelineRunSpecStatusCancelled, pipelinev1.PipelineRunSpecStatusCancelledRunFinally,
		pipelinev1.PipelineRunSpecStatusStoppedRunFinally, pipelinev1.PipelineRunSpecStatusPending,
	} {
		for _, condition := range []corev1.ConditionStatus{corev1.ConditionUnknown, ""} {
			pr := pipelineRun(succeeded(condition, "Running", ""))
			pr.Spec.Status = asked
			if got := ResultOf(pr, nil, Links{}, diagnosis.Facts{}, 0); got != nil {
				t.Errorf("spec.status=%s, Succeeded=%q: result %+v", asked, condition, got)
			}
		}
		pr := pipelineRun(succeeded(corev1.ConditionTrue, "Succeeded", ""))
		pr.Spec.Status = asked
		if got := ResultOf(pr, nil, Links{}, diagnosis.Facts{}, 0); got.Outcome != v1alpha1.OutcomeSucceeded {
			t.Errorf("spec.status=%s: a run that succeeded before has the outcome %s", asked, got.Outcome)
		}
	}
	if got := ResultOf(pipelineRun(nil), nil, Links{}, diagnosis.Facts{}, 0); got != nil {
		t.Errorf("a run without conditions has the result %+v", got)
	}
}

type textCase struct {
	golden string
	name   string
	pr     *pipelinev1.PipelineRun
	tasks  []*pipelinev1.TaskRun
	links  Links
	facts  diagnosis.Facts
}

func TestResultOfText(t *testing.T) {
	ok := func() *pipelinev1.TaskRun {
		return taskRun("clone", 0, 5, succeeded(corev1.ConditionTrue, "Succeeded", ""))
	}
	broken := taskRun("unit", 5, 9, succeeded(corev1.ConditionFalse, "Failed", `"step-test" exited with code 1`))
	broken.Status.RetriesStatus = pipelinev1.RetriesStatus{{}, {}}
	ignored := taskRun("lint", 5, 6, succeeded(corev1.ConditionFalse, "FailureIgnored", "ignored"))
	late := taskRun("deploy", -1, -1, nil)
	cancelled := taskRun("e2e", 6, 8, succeeded(corev1.ConditionFalse, "TaskRunCancelled", "TaskRun cancelled"))
	running := taskRun("scan", 6, -1, succeeded(corev1.ConditionUnknown, "Running", ""))
	pod := taskRun("build", 1, 2, succeeded(corev1.ConditionFalse, "PodCreationFailed", podMessage))
	hostile := taskRun("</td>\n\n<script>&*x*", 1, 2,
		succeeded(corev1.ConditionFalse, "Failed\n\n<b>", "</pre>\n\n**bold** @all <img src=x>\n\nend"))
	failed := func(message string) *pipelinev1.PipelineRun {
		return pipelineRun(succeeded(corev1.ConditionFalse, "Failed", message))
	}
	full := failed("Tasks Completed: 3 (Failed: 1, Cancelled 1), Skipped: 1")
	full.Status.ChildReferences = []pipelinev1.ChildStatusReference{
		{Name: broken.Name, PipelineTaskName: "unit", DisplayName: "Unit Tests"},
		{TypeMeta: runtime.TypeMeta{Kind: "CustomRun"}, Name: "build-abc-wait", PipelineTaskName: "wait"},
		{TypeMeta: runtime.TypeMeta{Kind: "TaskRun"}, Name: "build-abc-gone", PipelineTaskName: "gone"},
	}
	full.Status.SkippedTasks = []pipelinev1.SkippedTask{{Name: "release", Reason: pipelinev1.WhenExpressionsSkip}}
	one, two := taskRun("matrix", 1, 3, succeeded(corev1.ConditionFalse, "Failed", "b")),
		taskRun("matrix", 1, 2, succeeded(corev1.ConditionFalse, "Failed", "a"))
	one.Name, two.Name = "m-0", "m-1"
	briefs := map[string]string{
		"succeeded": "", "cancelled": "", "failed": `task Unit Tests (unit): "step-test" exited with code 1`,
		"no-taskruns":  "Pipeline ci/build can't be Run; it contains Tasks that don't exist",
		"pod-creation": "",
		"timed-out":    "task e2e: TaskRun cancelled",
		"hostile":      "task </td> <script>&*x*: </pre> **bold** @all <img src=x> end",
	}
	checkText(t, briefs, []textCase{
		{"archived", "the report says where the run is after it was pruned", pipelineRun(succeeded(corev1.ConditionTrue,
			"Succeeded", "ok")), []*pipelinev1.TaskRun{ok()}, archiveLinks(), diagnosis.Facts{}},
		{"succeeded", "a success is a table and nothing else", pipelineRun(succeeded(corev1.ConditionTrue, "Succeeded",
			"ok")), []*pipelinev1.TaskRun{ok()}, consoleLinks(), diagnosis.Facts{}},
		{"failed", "a failure names the task that failed, with every kind of row in the order of their start", full,
			[]*pipelinev1.TaskRun{late, cancelled, broken, ignored, running, ok()}, consoleLinks(), diagnosis.Facts{}},
		{"no-console", "without a console there is no link",
			failed("Tasks Completed: 1 (Failed: 1, Cancelled 0), Skipped: 0"), []*pipelinev1.TaskRun{broken}, Links{}, diagnosis.Facts{}},
		{"no-taskruns", "without TaskRuns the text is Tekton's message", pipelineRun(succeeded(corev1.ConditionFalse,
			"CouldntGetTask", "Pipeline ci/build can't be Run; it contains Tasks that don't exist")), nil, consoleLinks(),
			diagnosis.Facts{}},
		{"pod-creation", "a pod that a webhook prevented is blamed on the webhook, and the Task is not",
			failed("Tasks Completed: 1 (Failed: 1, Cancelled 0), Skipped: 0"), []*pipelinev1.TaskRun{pod}, Links{},
			diagnosis.Facts{TaskExists: map[string]bool{"build": true}}},
		{"pod-creation-no-task", "Tekton's guess is repeated if it is right",
			failed("Tasks Completed: 1 (Failed: 1, Cancelled 0), Skipped: 0"), []*pipelinev1.TaskRun{pod}, Links{},
			diagnosis.Facts{TaskExists: map[string]bool{"build": false}}},
		{"create-run-failed", "a TaskRun that could not be created is diagnosed from the run's condition",
			pipelineRun(succeeded(corev1.ConditionFalse, "CreateRunFailed",
				`admission webhook "policy.example.com" denied the request: no root`)), []*pipelinev1.TaskRun{ok()}, Links{},
			diagnosis.Facts{}},
		{"timed-out", "cancelled tasks are named if nothing else failed", pipelineRun(succeeded(corev1.ConditionFalse,
			"PipelineRunTimeout", `PipelineRun "build-abc" failed to finish within "1h0m0s"`)),
			[]*pipelinev1.TaskRun{ok(), cancelled}, Links{}, diagnosis.Facts{}},
		{"cancelled", "a cancelled run blames nobody", pipelineRun(succeeded(corev1.ConditionFalse, "Cancelled",
			`PipelineRun "build-abc" was cancelled`)), []*pipelinev1.TaskRun{cancelled}, Links{}, diagnosis.Facts{}},
		{"matrix", "TaskRuns of one matrix are told apart", failed("x"), []*pipelinev1.TaskRun{one, two}, Links{}, diagnosis.Facts{}},
		{
			"hostile",
			"names and messages cannot leave their place",
			failed("<script>\n\n# x"),
			[]*pipelinev1.TaskRun{hostile},
			Links{
				Run:     `https://x/"><script> y`,
				Task:    func(TaskLink) string { return "javascript:alert(1)" },
				Archive: "javascript:alert(2)",
			},
			diagnosis.Facts{},
		},
	})
}

func checkText(t *testing.T, briefs map[string]string, cases []textCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text := ResultOf(c.pr, c.tasks, c.links, c.facts, 0).Text
			golden(t, "result-"+c.golden, text)
			brief := ResultOf(c.pr, c.tasks, c.links, c.facts, 0).Brief
			if want, known := briefs[c.golden]; known && (!strings.HasPrefix(brief, want) || (want == "" && brief != "")) {
				t.Errorf("in one line: %q, want %q", brief, want)
			}
			if strings.Contains(text, "\n\n") {
				t.Error("a blank line ends the HTML block: what follows would be read as Markdown")
			}
			for _, limit := range []int{0, 100, 1500} {
				again := ResultOf(c.pr, c.tasks, c.links, c.facts, limit)
				if again.Text != ResultOf(c.pr, c.tasks, c.links, c.facts, limit).Text {
					t.Error("the text is another one each time")
				}
				if limit > 0 && len(again.Text) > limit {
					t.Errorf("%d bytes, limit %d", len(again.Text), limit)
				}
			}
		})
	}
}

func TestResultOfIsCut(t *testing.T) {
	var tasks []*pipelinev1.TaskRun
	for i := range 300 {
		tasks = append(tasks, taskRun(fmt.Sprintf("täsk-%03d", i), i, i+1, succeeded(corev1.ConditionTrue, "Succeeded", "")))
	}
	tasks = append(tasks, taskRun("the-culprit", 400, 401,
		succeeded(corev1.ConditionFalse, "Failed", strings.Repeat("é&<", 5000))))
	pr := pipelineRun(succeeded(corev1.ConditionFalse, "Failed", strings.Repeat("ü", 20000)))
	for _, limit := range []int{2000, 2001, 2002, 2003, 4000, 32 << 10} {
		result := ResultOf(pr, tasks, consoleLinks(), diagnosis.Facts{}, limit)
		switch {
		case len(result.Text) > limit:
			t.Errorf("limit %d: %d bytes", limit, len(result.Text))
		case !utf8.ValidString(result.Text) || !utf8.ValidString(result.Message):
			t.Errorf("limit %d: cut within a character", limit)
		case !strings.Contains(result.Text, "<b>the-culprit</b>"):
			t.Errorf("limit %d: the failing task's name was cut", limit)
		case !strings.Contains(result.Text, "more (cut)"):
			t.Errorf("limit %d: nothing shows that rows were cut", limit)
		case len(result.Brief) > maxBrief || !utf8.ValidString(result.Brief) ||
			!strings.HasPrefix(result.Brief, "task the-culprit: "):
			t.Errorf("in one line: %q", result.Brief)
		case len(result.Message) > maxMessage:
			t.Errorf("the message has %d bytes", len(result.Message))
		}
	}
}

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		in, mark, want string
		limit          int
	}{
		{"short", "…", "short", 0},
		{"short", "…", "short", 5},
		{"äöü", "!", "ä!", 4},
		{"äöü", "!", "äö!", 5},
		{"äöü", "a long mark", "ä", 3},
		{"äöü", "a long mark", "", 1},
	} {
		if got := shorten(c.in, c.mark, c.limit); got != c.want {
			t.Errorf("shorten(%q, %q, %d) = %q, want %q", c.in, c.mark, c.limit, got, c.want)
		}
	}
}

func TestConclusionOf(t *testing.T) {
	for outcome, want := range map[v1alpha1.Outcome]Conclusion{
		v1alpha1.OutcomeSucceeded: Success, v1alpha1.OutcomeFailed: Failure, v1alpha1.OutcomeCancelled: Cancelled,
		v1alpha1.OutcomeDeleted: Cancelled, "SomethingNew": "",
	} {
		if got := conclusionOf(&v1alpha1.Result{Outcome: outcome}); got != want {
			t.Errorf("conclusionOf(%s) = %q, want %q", outcome, got, want)
		}
	}
	if got := conclusionOf(nil); got != "" {
		t.Errorf("conclusionOf(nil) = %q", got)
	}
}
