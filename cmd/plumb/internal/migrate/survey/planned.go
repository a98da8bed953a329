// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/delivery"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/planning"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/tekton"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
	"github.com/plumbline-ci/plumbline/pkg/provider/web"
)

// Event is an event that Pipelines-as-Code has processed.
type Event struct {
	delivery.Described
	// Project is the service's id of the repository; 0 if it is not known.
	Project    int64
	Repository *pacv1alpha1.Repository
	Config     *config.Config
	Source     plan.Source
	Version    string
}

// Starts says whether a pipeline starts.
type Starts string

// The answers. Unknown means that it depends on what the PipelineRuns do not say.
const (
	Yes     Starts = "yes"
	No      Starts = "no"
	Unknown Starts = "unknown"
)

// Pipeline is what Plumbline decides about one definition.
type Pipeline struct {
	Name, File string
	Starts     Starts
	// Why is a sentence. Mistake is the reason of a mistake of the author, empty for none.
	Why, Mistake string
}

// Planned is what Plumbline does for an event.
type Planned struct {
	Pipelines []Pipeline
	// Files are the definitions, by path.
	Files map[string]string
	// inlinesMore is true if Pipelines-as-Code inlines nothing.
	inlinesMore bool
}

// Plan plans an event as the controller does, for users who may start runs.
func Plan(ctx context.Context, e Event) (*Planned, error) {
	sent, err := e.Delivery()
	if err != nil {
		return nil, err
	}
	read, err := sent.Read()
	if err != nil {
		return nil, err
	}
	if read.Ignored != "" {
		return nil, errors.New(read.Ignored)
	}
	read.Spec.Project.ID = cmp.Or(e.Project, read.Spec.Project.ID)
	r := e.Repository
	read.Spec.Repository = v1alpha1.RepositoryReference{Namespace: r.Namespace, Name: r.Name, UID: r.UID, URL: r.Spec.URL}
	source := &recorder{Source: e.Source, planned: &Planned{
		Files: map[string]string{}, inlinesMore: !e.Config.Remote.Fetch,
	}}
	in := plan.Input{
		Event:      plan.Event{Namespace: config.Name, Name: read.Spec.EventName(), Spec: read.Spec},
		Repository: r, Config: e.Config, Version: e.Version,
	}
	made, err := plan.Make(ctx, in, plan.Sources{
		Source: source, History: trusting{}, Access: trusting{}, Remote: plan.Remote{Addresses: trusting{}, Web: trusting{}},
		Delivery: plan.Delivery{Payload: func(context.Context) ([]byte, error) { return nil, unknown("the payload") }},
		Secret: func(_ context.Context, ref template.SecretRef) (string, error) {
			return "", unknown("Secret " + ref.Name)
		},
	})
	if err != nil {
		return nil, err
	}
	return source.planned, source.planned.read(ctx, in.Event.Name, made)
}

// read takes the decisions of a plan.
func (p *Planned) read(ctx context.Context, event string, made *plan.Plan) error {
	runs := map[string]*plan.Run{}
	for i := range made.Runs {
		runs[made.Runs[i].Name] = &made.Runs[i]
	}
	for _, d := range made.Decisions {
		name := planning.RunName(event, d)
		one, err := pipeline(ctx, d, runs[name])
		if err != nil {
			return err
		}
		delete(runs, name)
		p.Pipelines = append(p.Pipelines, one)
	}
	for _, run := range runs { // what is said of a file or of the directory
		if run.Refused != nil && !run.Unmatched() {
			p.Pipelines = append(p.Pipelines, Pipeline{
				Name: run.Pipeline, File: run.Pipeline, Starts: No, Why: run.Refused.Message, Mistake: run.Refused.Reason,
			})
		}
	}
	if len(p.Pipelines) == 0 && made.Reason != "" {
		p.Pipelines = []Pipeline{{Starts: No, Why: made.Message, Mistake: mistakeEnded}}
	}
	return nil
}

// pipeline returns what became of one definition. One that is selected starts, even if something
// that it refers to is not read here.
func pipeline(ctx context.Context, d v1alpha1.Decision, run *plan.Run) (Pipeline, error) {
	p := Pipeline{Name: d.Pipeline, File: d.File, Starts: No, Why: d.Reason}
	switch {
	case d.Open && d.Selected == "":
		p.Starts = Unknown
	case d.Open:
		p.Starts = Yes
	case run == nil, run.Unmatched():
	case run.Refused != nil:
		p.Why, p.Mistake = run.Refused.Message, run.Refused.Reason
	default:
		p.Starts = Yes
		if run.Manifest == nil {
			break
		}
		created, err := run.PipelineRun()
		if err != nil {
			return p, err
		}
		refusal, err := tekton.Judge(ctx, created)
		if err != nil {
			return p, fmt.Errorf("judging pipeline %s: %w", d.Pipeline, err)
		}
		if refusal != nil {
			p.Starts, p.Why, p.Mistake = No, refusal.Message, mistakeRefused
		}
	}
	return p, nil
}

// recorder notes the definitions that are read.
type recorder struct {
	plan.Source
	planned *Planned
}

// Files implements plan.Source.
func (r *recorder) Files(ctx context.Context, sha, dir string) ([]git.File, error) {
	files, err := r.Source.Files(ctx, sha, dir)
	for _, file := range files {
		r.planned.Files[file.Path] = string(file.Data)
	}
	return files, err
}

// unknown returns the error of a question that the PipelineRuns do not answer.
func unknown(what string) error { return fault.Operatorf(reasonUnknown, "%s is not known here", what) }

// trusting answers the planner's other questions: Pipelines-as-Code has started the event, so its
// user could. Nothing outside the repository is read.
type trusting struct{}

func (trusting) CanWrite(context.Context, string) (bool, error) { return true, nil }
func (trusting) Member(context.Context, string) (bool, error)   { return true, nil }
func (trusting) Owner(context.Context, string) (bool, error)    { return true, nil }
func (trusting) InTeam(context.Context, string, string) (bool, error) {
	return true, nil
}

func (trusting) Actor(_ context.Context, _ *v1alpha1.GitEventSpec, reported string) (string, error) {
	return reported, nil
}

func (trusting) Pulls(context.Context, string) ([]git.Pull, error) { return nil, nil }

func (trusting) Complete(_ context.Context, event *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
	return event, nil
}

func (trusting) Versions(context.Context, *v1alpha1.GitEventSpec) ([]git.Version, error) {
	return nil, nil
}

func (trusting) Differ(context.Context, string, string, ...string) ([]string, error) {
	return nil, nil
}

func (trusting) FileAt(context.Context, string) ([]byte, error) {
	return nil, unknown("the referenced file")
}

func (trusting) Get(context.Context, string, egress.Policy, int64) ([]byte, error) {
	return nil, unknown("the referenced page")
}

func (trusting) Package(context.Context, web.Hub, string, egress.Policy) ([]byte, error) {
	return nil, unknown("the referenced package")
}
