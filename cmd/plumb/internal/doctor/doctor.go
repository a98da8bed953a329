// SPDX-License-Identifier: Apache-2.0

// Package doctor makes the checks of an installation and prints one line for each.
package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
)

// The results of a check.
const (
	Passed = "passed"
	Failed = "failed"
	// NotAllowed means that nothing failed, and that this account may not read a part of it.
	NotAllowed = "not allowed"
	// Skipped means that the check was not made, because the API server did not respond.
	Skipped = "skipped"
)

// Result is the result of one check.
type Result struct {
	Check    string    `json:"check"`
	Result   string    `json:"result"`
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is one reason why a check did not pass.
type Problem struct {
	// Object has the problem, Problem completes the sentence, Remedy says what to do.
	Object  string `json:"object"`
	Problem string `json:"problem"`
	Remedy  string `json:"remedy"`
	// Missing is the right that this account lacks; empty if the check failed.
	Missing string `json:"missingRight,omitempty"`
}

// Unreachable returns the results if the kubeconfig cannot be used.
func Unreachable(err error, first preflight.Check, others []preflight.Check) []Result {
	failed := Result{Check: first.Name, Result: Failed, Problems: []Problem{{
		Object: "The kubeconfig", Problem: "cannot be used: " + err.Error(),
		Remedy: "check it with: kubectl version",
	}}}
	return append([]Result{failed}, skipped(first, others)...)
}

// Examine makes the checks. If the API server does not respond to one, it skips the rest.
func Examine(ctx context.Context, first preflight.Check, others []preflight.Check) []Result {
	findings := first.Run(ctx)
	all := []Result{resultOf(first.Name, findings)}
	if preflight.Unanswered(findings) {
		return append(all, skipped(first, others)...)
	}
	for i, check := range others {
		findings := check.Run(ctx)
		all = append(all, resultOf(check.Name, findings))
		if slices.ContainsFunc(findings, noAnswer) { // each further call would last as long
			return append(all, skipped(check, others[i+1:])...)
		}
	}
	return all
}

// noAnswer reports whether the API server did not respond to a check.
func noAnswer(f preflight.Finding) bool {
	failed := net.Error(nil)
	return errors.As(f.Err, &failed) || errors.Is(f.Err, context.Canceled)
}

func skipped(first preflight.Check, others []preflight.Check) []Result {
	var all []Result
	for _, check := range others {
		all = append(all, Result{Check: check.Name, Result: Skipped, Problems: []Problem{{
			Object: "This check", Problem: "was not made", Remedy: "fix the check " + first.Name + " first",
		}}})
	}
	return all
}

func resultOf(name string, findings []preflight.Finding) Result {
	r := Result{Check: name, Result: Passed}
	for _, f := range findings {
		p := Problem{Object: f.Object, Problem: f.Problem, Remedy: f.Remedy}
		if p.Missing = kube.Right(f.Err); p.Missing != "" {
			p.Problem = "was not checked: this account lacks the right to " + p.Missing
			p.Remedy = "ask an administrator of the cluster for this right, or to run plumb doctor"
		}
		if !slices.ContainsFunc(r.Problems, func(known Problem) bool { return known.says(p) }) {
			r.Problems = append(r.Problems, p)
		}
	}
	switch {
	case len(r.Problems) == 0:
	case slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Missing == "" }):
		r.Result = Failed
	default:
		r.Result = NotAllowed
	}
	return r
}

// says reports whether another problem adds nothing: one missing right may hide many objects.
func (p Problem) says(other Problem) bool {
	return p == other || p.Missing != "" && p.Missing == other.Missing
}

// Worst returns the worst result: Failed, then Skipped, NotAllowed and Passed.
func Worst(all []Result) string {
	for _, result := range []string{Failed, Skipped, NotAllowed} {
		if slices.ContainsFunc(all, func(r Result) bool { return r.Result == result }) {
			return result
		}
	}
	return Passed
}

// WriteTable prints one line for each check, and one more for each further problem of it.
func WriteTable(w io.Writer, all []Result) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "CHECK\tRESULT\tWHY") // Flush returns the error
	for _, r := range all {
		if len(r.Problems) == 0 {
			_, _ = fmt.Fprintf(table, "%s\t%s\n", r.Check, r.Result)
		}
		for _, p := range r.Problems {
			why := fmt.Sprintf("%s %s. To fix it: %s", p.Object, p.Problem, p.Remedy)
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", r.Check, r.Result, oneLine(why))
		}
	}
	return table.Flush()
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// WriteJSON prints one object.
func WriteJSON(w io.Writer, namespace string, all []Result) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(struct {
		Namespace string   `json:"namespace"`
		Result    string   `json:"result"`
		Checks    []Result `json:"checks"`
	}{namespace, Worst(all), all})
}
