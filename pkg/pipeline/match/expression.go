// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"
	"maps"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/cel"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// onExpression decides by on-cel-expression, which replaces the other annotations.
func onExpression(ev Event, text string, annotations map[string]string) (Selection, error) {
	program, err := program(ev, text)
	if err != nil {
		return Selection{}, fmt.Errorf("on-cel-expression: %w", err)
	}
	if ev.EventType == LabelEvent && !program.Mentions(cel.EventType, "labels", "pull_request_labels") {
		return declined("a label was added, and on-cel-expression reads neither event_type nor labels"), nil
	}
	if ev.Trigger == v1alpha1.TriggerMergeGroup && !strings.Contains(text, string(ev.Trigger)) {
		// Written for pushes, as in PaC: target_branch == "main" would deploy what is not merged.
		return declined("on-cel-expression does not mention merge_group, so it is not for the merge queue"), nil
	}
	outcome, err := evaluate(ev, program)
	if err != nil {
		return Selection{}, fmt.Errorf("on-cel-expression: %w", err)
	}
	agreed, err := outcome.Bool()
	if err != nil {
		return Selection{}, fmt.Errorf("on-cel-expression: %w", err)
	}
	d := Selection{Selected: agreed, Reason: selected("on-cel-expression is true"),
		Incomplete: ev.Changed != nil && ev.Changed.Truncated && program.Mentions(cel.Files)}
	if !agreed {
		d.Reason = "on-cel-expression: " + outcome.WhyNot()
	}
	if others := replaced(annotations); len(others) > 0 {
		d.Reason += "; on-cel-expression replaces " + strings.Join(others, ", ")
	}
	return d, nil
}

// evaluate returns an outcome that depends on no missing value, or the error *template.Unknown.
func evaluate(ev Event, program *cel.Program) (cel.Outcome, error) {
	params, err := ev.Params.Values(program)
	if err != nil {
		return cel.Outcome{}, err
	}
	outcome, err := program.Evaluate(values(ev, program, params))
	if err == nil && len(outcome.Missing) > 0 {
		err = params.Missing(outcome.Missing)
	}
	return outcome, err
}

func program(ev Event, text string) (*cel.Program, error) {
	program, err := ev.Params.Compile(text)
	if err != nil {
		return nil, err
	}
	if !program.Boolean() {
		return nil, fault.Invalidf(cel.ReasonBad, "1:1: the expression is neither true nor false: compare something")
	}
	return program, nil
}

// values returns the variables that the expression reads. Branches of a push lose refs/heads/,
// unless the expression contains that prefix.
func values(ev Event, program *cel.Program, params template.Values) cel.Values {
	target, source := ev.BaseRef, ev.HeadRef
	if ev.Trigger == v1alpha1.TriggerPush && !program.Quotes(branchPrefix) {
		target, source = strings.TrimPrefix(target, branchPrefix), strings.TrimPrefix(source, branchPrefix)
	}
	headers := make(map[string]any, len(ev.Headers))
	for name, value := range ev.Headers {
		headers[strings.ToLower(name)] = value
	}
	v := cel.Values{}
	params.Put(v)
	maps.Copy(v, cel.Values{
		cel.Event: string(ev.Trigger), cel.EventType: ev.EventType, cel.EventTitle: ev.Title,
		cel.TargetBranch: target, cel.SourceBranch: source,
		cel.TargetURL: ev.TargetURL, cel.SourceURL: ev.SourceURL, cel.Headers: headers,
	})
	if ev.Body != nil {
		v[cel.Body] = ev.Body
	}
	if ev.Changed != nil {
		v[cel.Files] = ev.Changed.Files()
	}
	return v
}

// Branches returns the target and the source branch for the annotations of a pipeline's run. The
// placeholders of the given annotations are already replaced. For a push, both branches are refs
// (refs/heads/main). A branch that the pipeline's own expression reads has the short name that the
// expression sees (main), as in PaC.
func Branches(ev Event, annotations map[string]string) (target, source string) {
	target, source = ev.BaseRef, ev.HeadRef
	text, found := annotations[pipelinesascode.OnCELExpression]
	if !found || ev.Trigger != v1alpha1.TriggerPush {
		return target, source
	}
	program, err := ev.Params.Compile(text)
	if err != nil || program.Quotes(branchPrefix) {
		return target, source
	}
	if program.Reads(cel.TargetBranch) {
		target = strings.TrimPrefix(target, branchPrefix)
	}
	if program.Reads(cel.SourceBranch) {
		source = strings.TrimPrefix(source, branchPrefix)
	}
	return target, source
}

// replaced lists the annotations that have no effect next to on-cel-expression.
func replaced(annotations map[string]string) []string {
	var others []string
	for _, name := range []string{pipelinesascode.OnEvent, pipelinesascode.OnTargetBranch, pipelinesascode.OnLabel,
		pipelinesascode.OnPathChange, pipelinesascode.OnPathChangeIgnore} {
		if _, found := annotations[name]; found {
			others = append(others, strings.TrimPrefix(name, pipelinesascode.GroupName+"/"))
		}
	}
	return others
}
