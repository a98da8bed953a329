// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/delivery"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/planning"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/tekton"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
	"github.com/plumbline-ci/plumbline/pkg/provider/web"
)

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
	Name   string
	Starts Starts
	// Why is a sentence. Mistake is the reason of a mistake of the author, empty for none.
	Why, Mistake string
}

// Planned is what Plumbline does for an event.
type Planned struct {
	Pipelines []Pipeline
	// inlinesMore is true if Pipelines-as-Code inlines nothing.
	inlinesMore bool
	// pull is true if the event is that of a pull request.
	pull bool
	// elsewhere is true if the definitions are those of the default branch as it is today.
	elsewhere bool
}

// plan plans an event as the controller does, for users who may start runs.
func (s *surveyor) plan(ctx context.Context, m *moving, from *origin, e started) (*Planned, error) {
	sent, err := delivery.Described{
		Kind: e.kind, Service: e.service, URL: e.url, HeadURL: e.headURL, Base: e.base, Head: e.head,
		DefaultBranch: from.defaultBranch, SHA: e.sha, Message: e.title, Sender: e.sender, Number: e.number, Key: e.key,
	}.Delivery()
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
	read.Spec.Project.ID = cmp.Or(from.project, read.Spec.Project.ID)
	read.Spec.Repository = v1alpha1.RepositoryReference{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, URL: m.Spec.URL,
	}
	name := read.Spec.EventName()
	made, err := plan.Make(ctx, plan.Input{
		Event:      plan.Event{Namespace: config.Name, Name: name, Spec: read.Spec},
		Repository: m.Repository, Config: m.config, Version: s.Version,
	}, plan.Sources{
		Source: from.Source, History: trusting{}, Access: trusting{},
		Remote:   plan.Remote{Addresses: trusting{}, Web: trusting{}},
		Delivery: plan.Delivery{Payload: func(context.Context) ([]byte, error) { return nil, unknown("the payload") }},
		Secret: func(_ context.Context, ref template.SecretRef) (string, error) {
			return "", unknown("Secret " + ref.Name)
		},
	})
	if err != nil {
		return nil, err
	}
	planned := &Planned{
		inlinesMore: !m.config.Remote.Fetch,
		pull:        e.kind.OfPull(),
		elsewhere:   made.DefinitionSHA != "" && made.DefinitionSHA != made.HeadSHA,
	}
	return planned, planned.read(ctx, name, made)
}

// read takes the decisions of a plan.
func (p *Planned) read(ctx context.Context, event string, made *plan.Plan) error {
	runs, decided := map[string]*plan.Run{}, map[string]bool{}
	for i := range made.Runs {
		runs[made.Runs[i].Name] = &made.Runs[i]
	}
	for _, d := range made.Decisions {
		name := planning.RunName(event, d)
		one, err := pipeline(ctx, d, runs[name])
		if err != nil {
			return err
		}
		decided[name] = true
		p.Pipelines = append(p.Pipelines, one)
	}
	for _, run := range made.Runs { // what is said of a file or of the directory
		if !decided[run.Name] && run.Refused != nil && !run.Unmatched() {
			p.Pipelines = append(p.Pipelines, Pipeline{
				Name: run.Pipeline, Starts: No, Why: run.Refused.Message, Mistake: run.Refused.Reason,
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
	p := Pipeline{Name: d.Pipeline, Starts: No, Why: strings.TrimPrefix(d.Reason, "waiting: ")}
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
