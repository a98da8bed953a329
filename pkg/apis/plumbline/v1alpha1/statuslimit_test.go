// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"
)

// mostBytes is the maximum size of a status: the rest of etcd's 1.5 MiB is for the spec, the
// metadata and the envelope.
const mostBytes = 1 << 20

// worst is a status with everything at its limits and every text long. Decisions have 96 bytes of
// names each, the limit of resolve for 1000.
func worst(text string) *GitEventStatus {
	at := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	name := func(n int, i int) string { return fmt.Sprintf("%0*d", n, i) }
	s := &GitEventStatus{Phase: "", Disposition: DispositionRuns, Plan: &Plan{
		HeadSHA: name(64, 0), DefinitionSHA: name(64, 0), Reason: text, Message: text, Secret: name(63, 0),
	}}
	for i := range 1000 {
		s.Plan.Decisions = append(s.Plan.Decisions,
			Decision{File: name(48, i), Document: i, Pipeline: name(48, i), Reason: text, Open: i%2 == 0})
	}
	for i := range MaxRuns {
		run := Run{
			Pipeline: name(253, i), Namespace: name(63, 0), Name: name(63, i), Note: text, Secret: name(63, i),
			SecretRenewAt: &at, SecretOwned: true, Unresolved: true, UID: types.UID(name(36, i)), Patched: name(16, i),
		}
		if i%2 == 0 {
			run.Refused = &Refusal{Reason: text, Message: text}
		} else {
			run.Result = &Result{
				Outcome: OutcomeSucceeded, Reason: text, Message: text, StartedAt: &at, CompletedAt: &at, Text: text, Brief: text,
				Log: &RunLog{Until: &at},
			}
			for range 2 * maxLogSteps {
				run.Result.Log.Steps = append(run.Result.Log.Steps, StepLog{Task: text, Step: text, Text: text})
			}
			first := &run.Result.Log.Steps[0]
			for line := range int32(MaxSources + 1) {
				first.Sources = append(first.Sources, SourceLine{Path: name(9, 0), Line: 1<<30 + line, Message: text})
			}
		}
		s.Plan.Decisions[2*i].Selected = text // it is open
		s.Runs = append(s.Runs, run)
		s.Checks = append(s.Checks, Check{
			Key: run.Name, Name: name(63, 0) + " / " + run.Pipeline, ID: name(24, i), Intent: true, Holder: name(64, 0),
			RecheckAt: &at, Accepted: name(64, i), Concluded: true,
			Annotated: true,
		})
		s.Waits = append(s.Waits, Wait{
			Step: "create/" + run.Name, Class: "Transient", Reason: text, Message: text, Since: at, NotBefore: &at,
		})
	}
	for _, step := range []string{"plan", "report", "renew", "annotate", "reconcile"} {
		s.Waits = append(s.Waits, Wait{
			Step: step, Class: "Transient", Reason: text, Message: text, Since: at, NotBefore: &at,
		})
		s.Conditions = append(s.Conditions,
			apis.Condition{Type: apis.ConditionType(step), Status: corev1.ConditionUnknown, Reason: "R", Message: text})
	}
	return s
}

func size(t *testing.T, s *GitEventStatus) int {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return len(data)
}

func TestFitKeepsLargestStatusWithinLimit(t *testing.T) {
	for name, text := range map[string]string{
		"letters": strings.Repeat("x", 8<<10), "tags": strings.Repeat("<>&", 2<<10),
		"control characters":     strings.Repeat("\x01", 4<<10),
		"four bytes a character": strings.Repeat("😀", 2<<10), "lines": strings.Repeat("a\n", 4<<10),
	} {
		s := worst(text)
		Fit(s)
		after := size(t, s)
		t.Logf("%s: %d KiB", name, after>>10)
		if after > mostBytes {
			t.Errorf("%s: %d bytes, at most %d fit", name, after, mostBytes)
		}
		if reason := s.Plan.Decisions[7].Reason; !utf8.ValidString(reason) || !strings.HasSuffix(reason, mark) {
			t.Errorf("%s: cut to %q", name, reason)
		}
		again := s.DeepCopy()
		if Fit(again); !equality.Semantic.DeepEqual(s, again) {
			t.Errorf("%s: what fits is cut again", name)
		}
	}
}

// Reports are made from these texts: a report that was sent must not change because another run
// finishes or is decided.
func TestFitCutsTextOnce(t *testing.T) {
	long := strings.Repeat("y", 200<<10)
	s := &GitEventStatus{Plan: &Plan{Decisions: make([]Decision, 40)}}
	for i := range s.Plan.Decisions {
		s.Plan.Decisions[i].Open = true
	}
	var first string
	for i := range s.Plan.Decisions {
		s.Plan.Decisions[i].Open = false
		s.Runs = append(s.Runs, Run{Name: fmt.Sprint(i), Result: &Result{Text: long}})
		Fit(s)
		if i == 0 {
			first = s.Runs[0].Result.Text
		}
		if s.Runs[0].Result.Text != first || len(first) == len(long) {
			t.Fatalf("after %d runs the first one's text has %d bytes, it had %d", i+1, len(s.Runs[0].Result.Text), len(first))
		}
	}
}

func TestFitKeepsOrdinaryTexts(t *testing.T) {
	s := &GitEventStatus{Plan: &Plan{Message: "3 of 9 pipelines in .tekton are for this event"}}
	for i := range 200 {
		s.Plan.Decisions = append(s.Plan.Decisions,
			Decision{Reason: "on-path-change [docs/**] matches no changed file (changed: cmd/app/main.go and 4 more)"})
		if i < 20 {
			s.Runs = append(s.Runs, Run{Result: &Result{
				Message: "Tasks Completed: 9 (Failed: 0, Cancelled 0), Skipped: 0", Text: strings.Repeat("<td>x</td>", 300),
			}})
		}
	}
	s.Plan.Decisions[0].Reason = strings.Repeat("why ", 5000) // one long one among them
	before := s.DeepCopy()
	if Fit(s); !cmp.Equal(before, s) {
		t.Error(cmp.Diff(before, s))
	}
}

func TestLengthCountsJSONBytes(t *testing.T) {
	for _, text := range []string{"", "a", `"\`, "\n\r\t", "\x00\x1f", "<>&", "é😀", "\u2028\u2029", "\xff"} {
		data, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Length(text) + len(`""`); got < len(data) {
			t.Errorf("%q takes %d bytes, Length says %d", text, len(data), got)
		}
	}
}
