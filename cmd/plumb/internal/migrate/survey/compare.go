// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/worktree"
)

// compareEvents compares the last events of each Repository.
func (s *surveyor) compareEvents(ctx context.Context, all []*moving, count *Events) error {
	var trees map[string]*worktree.Tree
	if s.Clones != "" {
		var err error
		if trees, err = s.clones(ctx); err != nil {
			return err
		}
	}
	for _, m := range all {
		comparable := s.comparable(m)
		if len(comparable) == 0 {
			continue
		}
		from := s.origin(ctx, trees, m, comparable[0])
		if from == nil {
			continue
		}
		for _, e := range comparable {
			if from.has != nil && !from.has(ctx, e.sha) {
				s.skip("the clone does not have the commit", "git fetch it", fmt.Sprintf("%s at %.8s", m.name(), e.sha))
				continue
			}
			s.compareOne(ctx, m, from, e, count)
		}
	}
	return nil
}

// comparable returns the last events of a Repository whose PipelineRuns say what they were.
func (s *surveyor) comparable(m *moving) []started {
	var events []started
	for _, e := range m.runs {
		switch {
		case e.why != "":
			s.skip(e.why, "", m.name())
		case len(events) < s.Events:
			events = append(events, e)
		}
	}
	return events
}

// origin returns where the files of a Repository are read, nil if they cannot be.
func (s *surveyor) origin(ctx context.Context, trees map[string]*worktree.Tree, m *moving, e started) *origin {
	if from, found := cloneOf(ctx, trees, m.Spec.URL); found {
		return from
	}
	if !s.Remote {
		s.skip("there is no clone of the repository",
			"--clones names a directory with clones, and --remote reads the Git service", m.name())
		return nil
	}
	from, err := s.connect(ctx, m, e)
	if err != nil {
		s.skip("the Git service cannot be read", "", m.name()+" ("+err.Error()+")")
		return nil
	}
	return from
}

// compareOne plans an event and reports each pipeline that only one of the products starts.
func (s *surveyor) compareOne(ctx context.Context, m *moving, from *origin, e started, count *Events) {
	event := fmt.Sprintf("%s at %.8s", m.name(), e.sha)
	planned, err := s.plan(ctx, m, from, e)
	if err != nil {
		s.skip("the event cannot be planned", "", event+" ("+err.Error()+")")
		return
	}
	differences, unknown := compare(planned, e.names, func(name string) bool {
		return !slices.ContainsFunc(m.runs, func(other started) bool {
			return other.last.After(e.last) && slices.Contains(other.names, name)
		})
	})
	if len(differences) > 0 && planned.elsewhere {
		s.skip("the definitions are those of the default branch, which may have changed since the event", "", event)
		return
	}
	for _, p := range unknown {
		s.skip("a decision depends on what the PipelineRuns do not say: "+p.Why, "", event+": "+p.Name)
	}
	count.Compared++
	if len(differences) == 0 {
		count.Equal++
	}
	for _, d := range differences {
		s.add(d.Finding, m.name(), event+": "+d.pipeline)
	}
}

// compare returns the pipelines that only one of the products starts, and those about which
// Plumbline's decision is not known. started are the pipelines that Pipelines-as-Code has started.
// complete reports whether a pipeline that is not among them was certainly not started: the
// PipelineRuns of older events are deleted.
func compare(
	planned *Planned, started []string, complete func(name string) bool,
) (all []difference, unknown []Pipeline) {
	here := map[string]bool{}
	for _, p := range planned.Pipelines {
		name := strings.TrimSuffix(p.Name, "-")
		here[name] = true
		was := slices.Contains(started, name)
		switch {
		case p.Starts == Unknown, p.Starts == No && was && planned.unrecorded(p.Why):
			unknown = append(unknown, p)
		case p.Starts == Yes && !was && complete(name):
			all = append(all, planned.difference(p, OnlyPlumbline))
		case p.Starts == No && was:
			all = append(all, planned.difference(p, OnlyPaC))
		}
	}
	for _, name := range started {
		if !here[name] {
			absent := Pipeline{Name: name, Starts: No, Why: "no definition at the commit has this name", Mistake: mistakeAbsent}
			all = append(all, planned.difference(absent, OnlyPaC))
		}
	}
	return all, unknown
}

// unrecorded reports whether a decision depends on the labels or the title of a pull request.
func (p *Planned) unrecorded(why string) bool {
	return p.pull && (strings.HasPrefix(why, "on-label ") || strings.Contains(why, "event_title"))
}
