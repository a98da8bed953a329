// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/oracle/verdict"
)

const (
	// quiet is for how long nothing may change until an act is over. Pipelines-as-Code says of
	// nothing that it is over.
	quiet = 3 * time.Second
	// begins is how long Pipelines-as-Code may take until its first call about a delivery. It has
	// accepted it before it begins, and two sides that have done nothing yet look alike. There are
	// deliveries that it makes no call about (a close by an owner).
	begins = 10 * time.Second
	// limit is for how long an act may take.
	limit = 2 * time.Minute
)

// settle waits until both sides have finished: nothing has changed for so long.
func (p *performance) settle(ctx context.Context, quiet time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	last, since := "", time.Now()
	return cluster.Poll(ctx, 300*time.Millisecond, func() error {
		now, err := p.fingerprint(ctx)
		if err != nil {
			since = time.Now()
			return err
		}
		if now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < quiet {
			return errors.New("it still changes")
		}
		return nil
	})
}

// fingerprint changes with everything that is compared. It returns an error while something is
// known to go on.
func (p *performance) fingerprint(ctx context.Context) (string, error) {
	calls := p.gateway.called(p.scenario.Name())
	if calls == p.asked && time.Since(p.delivered) < begins {
		return "", errors.New("Pipelines-as-Code has not begun")
	}
	print := fmt.Sprint(calls)
	for _, name := range p.events {
		event, err := p.ours.plumbline.PlumblineV1alpha1().GitEvents(p.system).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if event.Status.Disposition == "" {
			return "", fmt.Errorf("GitEvent %s is not planned", name)
		}
		if slices.ContainsFunc(event.Status.Runs, func(run v1alpha1.Run) bool { return run.Creatable() }) {
			return "", fmt.Errorf("GitEvent %s has runs that wait for a slot", name)
		}
		print += " " + event.ResourceVersion
	}
	for _, side := range []side{p.pac, p.ours} {
		runs, err := p.runsOf(ctx, side)
		if err != nil {
			return "", err
		}
		for _, run := range runs {
			if err := p.over(run); err != nil {
				return "", err
			}
			print += " " + run.GetResourceVersion()
		}
		for _, check := range p.checksOf(side) {
			print += fmt.Sprintf(" %d/%d", check.ID, check.Updates)
		}
	}
	return print, nil
}

// over returns an error while a run that is not held goes on, or has ended and is not reported.
func (p *performance) over(run unstructured.Unstructured) error {
	if !hasEnded(run) {
		if pipeline, _ := p.scenario.Pipeline(pipelineOf(run)); pipeline.Held && statusOf(run) == "" {
			return nil
		}
		return fmt.Errorf("PipelineRun %s goes on", run.GetName())
	}
	if state := run.GetLabels()[pipelinesascode.State]; state != "completed" && state != "failed" {
		return fmt.Errorf("PipelineRun %s is not reported: %q", run.GetName(), state)
	}
	return nil
}

func hasEnded(run unstructured.Unstructured) bool {
	status := cluster.ConditionOf(&run, "Succeeded").Status
	return status == "True" || status == "False"
}

// statusOf is spec.status, by which a run is cancelled.
func statusOf(run unstructured.Unstructured) string {
	status, _, _ := unstructured.NestedString(run.Object, "spec", "status")
	return status
}

// pipelineOf is the name in .tekton, without the dash of a generateName.
func pipelineOf(run unstructured.Unstructured) string {
	return strings.TrimSuffix(run.GetAnnotations()[pipelinesascode.OriginalPRName], "-")
}

func (p *performance) runsOf(ctx context.Context, s side) ([]unstructured.Unstructured, error) {
	list, err := s.dynamic.Resource(cluster.PipelineRuns()).Namespace(namespaceOf(p.scenario)).List(ctx,
		metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (p *performance) checksOf(s side) []forge.CheckRun {
	var all []forge.CheckRun
	for _, sha := range slices.Sorted(maps.Keys(p.shas)) {
		for _, check := range p.forge.ChecksFor(p.repo, sha) {
			if check.AppID == s.app.ID {
				all = append(all, check)
			}
		}
	}
	return all
}

// look returns what both sides show once nothing has changed for so long.
func (p *performance) look(ctx context.Context, quiet time.Duration) (pac, ours verdict.Side, err error) {
	if err := p.settle(ctx, quiet); err != nil {
		return pac, ours, err
	}
	if pac, err = p.show(ctx, p.pac); err != nil {
		return pac, ours, err
	}
	if ours, err = p.show(ctx, p.ours); err != nil {
		return pac, ours, err
	}
	ours.Plans, err = p.plans(ctx)
	return pac, ours, err
}

// plans are the reasons of our events, in the order of their delivery.
func (p *performance) plans(ctx context.Context) ([]string, error) {
	var all []string
	for _, name := range p.events {
		event, err := p.ours.plumbline.PlumblineV1alpha1().GitEvents(p.system).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		text := string(event.Status.Disposition)
		if plan := event.Status.Plan; plan != nil {
			text += ", " + plan.Reason + ": " + plan.Message
		}
		all = append(all, text)
	}
	return all, nil
}

// remember assigns the new runs to an act.
func (p *performance) remember(ctx context.Context, act int) error {
	for _, side := range []side{p.pac, p.ours} {
		runs, err := p.runsOf(ctx, side)
		if err != nil {
			return err
		}
		for _, run := range runs {
			if p.seen[run.GetUID()] == 0 {
				p.seen[run.GetUID()] = act
			}
		}
	}
	return nil
}

func (p *performance) show(ctx context.Context, s side) (verdict.Side, error) {
	shown := verdict.Side{Left: map[string][]int{}, Earlier: map[string][]verdict.Earlier{}}
	runs, err := p.runsOf(ctx, s)
	if err != nil {
		return shown, err
	}
	for _, run := range runs {
		before := p.seen[run.GetUID()]
		shown.Left[pipelineOf(run)] = append(shown.Left[pipelineOf(run)], before)
		if before > 0 {
			shown.Earlier[pipelineOf(run)] = append(shown.Earlier[pipelineOf(run)],
				verdict.Earlier{Act: before, Ended: ending(run)})
			continue
		}
		spec, _, _ := unstructured.NestedMap(run.Object, "spec")
		shown.Runs = append(shown.Runs, verdict.Run{
			Pipeline: pipelineOf(run), EventType: run.GetLabels()[pipelinesascode.EventType],
			SHA:   run.GetLabels()[pipelinesascode.SHA],
			Ended: ending(run), Spec: plain(spec, run).(map[string]any),
		})
	}
	for _, check := range p.checksOf(s) { // the newest of a name is the last
		shown.Checks = append(shown.Checks, verdict.Check{
			Name: strings.TrimSuffix(check.Name, "-"), SHA: check.HeadSHA, Status: check.Status, Conclusion: check.Conclusion,
		})
	}
	return shown, nil
}

func ending(run unstructured.Unstructured) string {
	condition := cluster.ConditionOf(&run, "Succeeded")
	switch {
	case condition.Status == "True":
		return "succeeded"
	case condition.Status == "False" && strings.HasPrefix(condition.Reason, "Cancelled"):
		return "cancelled"
	case condition.Status == "False":
		return "failed"
	}
	return "runs"
}

// plain replaces names that were generated.
func plain(value any, run unstructured.Unstructured) any {
	switch v := value.(type) {
	case string:
		if secret := run.GetAnnotations()[pipelinesascode.GitAuthSecret]; secret != "" {
			v = strings.ReplaceAll(v, secret, "the-git-auth-secret")
		}
		return strings.ReplaceAll(v, run.GetName(), "the-run")
	case []any:
		for i := range v {
			v[i] = plain(v[i], run)
		}
	case map[string]any:
		for key := range v {
			v[key] = plain(v[key], run)
		}
	}
	return value
}
