// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/test/installation"
)

const (
	planned   = 150 // pipelines
	planTimes = 11  // plans, of which the median counts
)

// commit is a Git service that knows one commit, in memory.
type commit struct {
	plan.Source
	files   []git.File
	changes git.Changes
}

func (c *commit) Head(_ context.Context, e *v1alpha1.GitEventSpec) (git.Head, error) {
	return git.Head{SHA: e.SHA, Project: e.Project}, nil
}

func (c *commit) Files(context.Context, string, string) ([]git.File, error) { return c.files, nil }

func (c *commit) Changed(context.Context, *v1alpha1.GitEventSpec) (git.Changes, error) {
	return c.changes, nil
}

// filtered is a commit with many pipelines, each for one directory, that changes so many of the
// directories.
func filtered(changed int) *commit {
	c := &commit{}
	for i := range planned {
		file := git.File{Path: fmt.Sprintf(".tekton/service-%03d.yaml", i), Data: []byte(strings.Replace(
			strings.Replace(pipeline, "name: build\n  annotations:", fmt.Sprintf("name: service-%03d\n  annotations:", i), 1),
			"on-event: \"[push]\"",
			fmt.Sprintf("on-event: \"[push]\"\n    pipelinesascode.tekton.dev/on-path-change: \"[services/%03d/**]\"", i), 1))}
		c.files = append(c.files, file)
		if i < changed {
			c.changes.Modified = append(c.changes.Modified, fmt.Sprintf("services/%03d/main.go", i))
		}
	}
	return c
}

// planning measures the CPU time of plans.
func planning(ctx context.Context, _ *room, out *Section) error {
	const sha = "0123456789012345678901234567890123456789"
	settings := config.Default()
	settings.SkipPushOfPulls = false // no look-up of pull requests
	project := v1alpha1.Project{Owner: "acme", Name: "app", ID: 5, URL: "https://git.example/acme/app"}
	in := plan.Input{
		Event: plan.Event{Namespace: system, Name: "push-1", Spec: &v1alpha1.GitEventSpec{
			Provider: "fake", Host: "git.example", DeliveryKey: "1", Trigger: v1alpha1.TriggerPush, EventType: "push",
			Repository: v1alpha1.RepositoryReference{Namespace: "team", Name: "app", URL: project.URL}, Project: project,
			SHA: sha, BaseRef: "refs/heads/main", HeadRef: "refs/heads/main", HeadURL: project.URL, Sender: "dev",
		}},
		Repository: &pacv1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}},
		Config:     settings, Version: "bench",
	}
	for _, changed := range []int{1, planned} {
		source := filtered(changed)
		for _, kept := range []*plan.Sets{nil, {}} {
			in.Sets = kept
			all, err := plans(ctx, in, source, changed)
			if err != nil {
				return err
			}
			name := fmt.Sprintf("plan of %d pipelines, %d selected", planned, changed)
			switch {
			case kept != nil:
				name += ", .tekton as before"
			case changed == 1:
				out.add("the first plan of a process", "ms of CPU", milliseconds(all[0]), 0)
			}
			out.add(name, "ms of CPU", milliseconds(installation.Percentile(all, 50)), 0)
		}
	}
	return nil
}

// plans is the CPU time of each of some plans of one event.
func plans(ctx context.Context, in plan.Input, source *commit, runs int) (all []time.Duration, err error) {
	for range planTimes {
		begin, err := cpuTimeNow()
		if err != nil {
			return nil, err
		}
		made, err := plan.Make(ctx, in, plan.Sources{Source: source})
		if err != nil {
			return nil, err
		}
		if len(made.Runs) != runs || made.Wait != nil {
			return nil, fmt.Errorf("%d runs are planned of %d: %s %w", len(made.Runs), runs, made.Message, made.Wait)
		}
		end, err := cpuTimeNow()
		if err != nil {
			return nil, err
		}
		all = append(all, end-begin)
	}
	return all, nil
}

// cpuTimeNow is the CPU time of this process, which does nothing else meanwhile. What the garbage
// collector takes is in it.
func cpuTimeNow() (time.Duration, error) {
	var used syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), err
}
