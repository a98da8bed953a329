// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// finalState is what one event leaves in the cluster and at the forge, without names, ids, commits
// and times.
type finalState struct {
	Event     finalEvent
	Runs      []finalRun // of the event, in the cluster
	Checks    []check    // of the commit, oldest first
	Secrets   int        // of the event, left in the Repository's namespace
	Payloads  int        // of the event, left in Plumbline's namespace
	Concluded []string   // the different conclusions ever asked for
}

type finalEvent struct {
	Phase, Disposition, Outcome string
	Conditions                  map[string]string
	Runs                        []string // name known, refusal, result
	Waits                       int
}

type finalRun struct {
	Succeeded           string
	Labels, Annotations map[string]string
}

// sameEnd requires the end of an event without faults.
func sameEnd(got, free finalState) error {
	if diff := cmp.Diff(free, got); diff != "" {
		return fmt.Errorf("the end differs from the fault-free one (-fault-free +this):\n%s", diff)
	}
	return nil
}

// sameEndWithoutTable requires the end of an event without faults, except that the report may lack
// its table. Without the right to list TaskRuns the report has no table, but still the conclusion.
func sameEndWithoutTable(got, free finalState) error {
	ignore := cmpopts.IgnoreFields(check{}, "Text")
	if diff := cmp.Diff(free, got, ignore); diff != "" {
		return fmt.Errorf("the end differs from the fault-free one by more than a table (-fault-free +this):\n%s", diff)
	}
	return nil
}

// refusedEnd requires the end of an event whose PipelineRun was denied: one failed check with the
// words of the denial.
func refusedEnd(got, _ finalState) error {
	switch {
	case len(got.Runs) != 0 || got.Secrets != 0 || got.Payloads != 0 || got.Event.Phase != "Settled" ||
		got.Event.Waits != 0:
	case len(got.Checks) != 1 || got.Checks[0].Status != "completed" || got.Checks[0].Conclusion != "failure":
	case !strings.Contains(got.Checks[0].Text+got.Checks[0].Summary+got.Checks[0].Title, denial):
	default:
		return nil
	}
	return fmt.Errorf("a denied PipelineRun leaves %+v", got)
}

var durations = regexp.MustCompile(`\d+ seconds?`)

// finalState reads what the event left. The event's own names are replaced by what they stand for.
func (l *trialRunner) finalState(e event) (finalState, error) {
	ctx := l.ctx
	var f finalState
	found, err := l.Plumbline.PlumblineV1alpha1().GitEvents(l.Namespace).Get(ctx, e.name, metav1.GetOptions{})
	if err != nil {
		return f, err
	}
	own := metav1.ListOptions{LabelSelector: plumbline.EventLabel + "=" + e.name}
	runs, err := l.Tekton.TektonV1().PipelineRuns(l.ci).List(ctx, own)
	secrets, errSecrets := l.Kube.CoreV1().Secrets(l.ci).List(ctx, own)
	payloads, errPayloads := l.Plumbline.PlumblineV1alpha1().EventPayloads(l.Namespace).List(ctx, own)
	if err := errors.Join(err, errSecrets, errPayloads); err != nil {
		return f, err
	}
	f.Secrets, f.Payloads = len(secrets.Items), len(payloads.Items)

	names := []string{e.name, "EVENT", e.sha, "SHA", e.sha[:7], "SHORT", l.ci, "NAMESPACE", l.Namespace, "PLUMBLINE",
		strings.TrimPrefix(l.git.url(), "http://"), "FORGE"}
	checks := l.git.checks(e.sha)
	for _, run := range found.Status.Runs {
		names = append(names, run.Name, "RUN")
	}
	for _, run := range runs.Items {
		names = append(names, run.Annotations["pipelinesascode.tekton.dev/git-auth-secret"], "SECRET")
	}
	known := strings.NewReplacer(names...)
	plain := func(s string) string {
		if n := len(checks); n > 0 && (s == checks[n-1].ID || strings.HasPrefix(checks[n-1].ID, s+"/")) {
			return "CURRENT CHECK"
		}
		return durations.ReplaceAllString(known.Replace(s), "N seconds")
	}

	f.Event = finalEvent{Phase: string(found.Status.Phase), Disposition: string(found.Status.Disposition),
		Outcome:    found.Status.Outcome,
		Conditions: map[string]string{}, Waits: len(found.Status.Waits)}
	for _, c := range found.Status.Conditions {
		f.Event.Conditions[string(c.Type)] = string(c.Status) + " " + c.Reason
	}
	for _, run := range found.Status.Runs {
		words := fmt.Sprintf("%s created %t refused %v", run.Pipeline, run.UID != "", run.Refused)
		if run.Result != nil {
			words += fmt.Sprintf(" ended %s %s: %s", run.Result.Outcome, run.Result.Reason, run.Result.Message)
		}
		f.Event.Runs = append(f.Event.Runs, plain(words))
	}
	for _, run := range runs.Items {
		// Tekton's own label, which it drops when its update conflicts with another one shortly
		// before the run's end.
		delete(run.Labels, "tekton.dev/pipeline")
		c := run.Status.GetCondition("Succeeded")
		f.Runs = append(f.Runs, finalRun{Succeeded: fmt.Sprint(c.IsTrue(), " ", c.GetReason()),
			Labels: replaced(run.Labels, plain), Annotations: replaced(run.Annotations, plain)})
	}
	for _, c := range checks {
		f.Checks = append(f.Checks, check{Name: c.Name, ExternalID: plain(c.ExternalID), Status: c.Status,
			Conclusion: c.Conclusion, Title: plain(c.Title), Summary: plain(c.Summary), Text: plain(c.Text)})
	}
	f.Concluded = l.conclusions(e)
	return f, nil
}

// conclusions lists the different conclusions that writes of the commit's checks asked for.
func (l *trialRunner) conclusions(e event) (all []string) {
	for _, write := range l.checkWrites(e.sha, "") {
		if write.Conclusion != "" && !slices.Contains(all, write.Conclusion) {
			all = append(all, write.Conclusion)
		}
	}
	return all
}

func replaced(in map[string]string, plain func(string) string) map[string]string {
	out := make(map[string]string, len(in))
	for key, value := range in {
		out[key] = plain(value)
	}
	return out
}
