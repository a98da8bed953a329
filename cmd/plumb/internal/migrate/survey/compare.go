// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/delivery"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/worktree"
)

// compare compares the last events of each Repository.
func (s *surveyor) compare(ctx context.Context, all []*moving, count *Events) error {
	var trees map[string]*worktree.Tree
	if s.Clones != "" {
		var err error
		if trees, err = clones(ctx, s.Clones); err != nil {
			return err
		}
	}
	for _, m := range all {
		comparable := s.comparable(m)
		if len(comparable) == 0 {
			continue
		}
		from, why := s.origin(ctx, trees, m, comparable[0])
		for _, e := range comparable {
			if why == "" && from.has != nil && !from.has(ctx, e.sha) {
				s.skip("the clone does not have the commit: git fetch it")
				continue
			}
			if why != "" {
				s.skip(why)
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
			s.skip(e.why)
		case len(events) < s.Events:
			events = append(events, e)
		}
	}
	return events
}

// origin returns where the files of a Repository are read, or why they cannot be.
func (s *surveyor) origin(
	ctx context.Context,
	trees map[string]*worktree.Tree,
	m *moving,
	e started,
) (from *origin, why string) {
	if from, found := cloneOf(ctx, trees, m.Spec.URL); found {
		return from, ""
	}
	if !s.Remote {
		return nil, "there is no clone of the repository: --clones names a directory with clones, and --remote reads the Git service"
	}
	from, err := s.connect(ctx, m, e)
	if err != nil {
		return nil, "the Git service cannot be read: " + err.Error()
	}
	return from, ""
}

// compareOne plans an event and reports each pipeline that only one of the products starts.
func (s *surveyor) compareOne(ctx context.Context, m *moving, from *origin, e started, count *Events) {
	described := delivery.Described{
		Kind: e.kind, Service: e.service, URL: e.url, HeadURL: e.headURL, Base: e.base, Head: e.head,
		DefaultBranch: from.defaultBranch, SHA: e.sha, Message: e.title, Sender: e.sender, Number: e.number, Key: e.key,
	}
	planned, err := Plan(ctx, Event{
		Described:  described,
		Project:    from.project,
		Repository: m.Repository,
		Config:     m.config,
		Source:     from.Source,
		Version:    s.Version,
	})
	if err != nil {
		s.skip("the event cannot be planned: " + err.Error())
		return
	}
	differences, unknown := Compare(planned, e.names, func(name string) bool {
		return !slices.ContainsFunc(m.runs, func(other started) bool {
			return other.last.After(e.last) && slices.Contains(other.names, name)
		})
	})
	for _, why := range unknown {
		s.skip(why)
	}
	count.Compared++
	if len(differences) == 0 {
		count.Equal++
	}
	for _, d := range differences {
		s.add(d.finding(), m.name(), fmt.Sprintf("%s at %.8s: %s", m.name(), e.sha, d.Pipeline))
	}
}

// Compare returns the pipelines that only one of the products starts, and why single decisions of
// Plumbline are not known. started are the pipelines that Pipelines-as-Code has started. complete
// reports whether a pipeline that is not among them was certainly not started: the PipelineRuns of
// older events are deleted.
func Compare(planned *Planned, started []string, complete func(name string) bool) (all []Difference, unknown []string) {
	here := map[string]bool{}
	for _, p := range planned.Pipelines {
		name := strings.TrimSuffix(p.Name, "-")
		here[name] = true
		was := slices.Contains(started, name)
		switch {
		case p.Starts == Unknown:
			unknown = append(unknown, "a decision depends on what the PipelineRuns do not say: "+p.Why)
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
