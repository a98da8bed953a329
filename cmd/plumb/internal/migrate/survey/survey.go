// SPDX-License-Identifier: Apache-2.0

// Package survey reads a cluster with Pipelines-as-Code and reports what a move to Plumbline
// changes. It writes nothing.
//
// survey.go is the entry point. installation.go finds the controllers and judges their ConfigMaps,
// repository.go judges Repositories, access.go the rights of people. run.go reads which pipelines
// Pipelines-as-Code has started, compare.go plans the same events with Plumbline's planner, and
// known.go names the section of the documentation that explains a difference. write.go prints.
package survey

import (
	"context"
	"fmt"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
)

// Options say what to read.
type Options struct {
	// Namespace is the one of Pipelines-as-Code, empty to look for it.
	Namespace string
	// Clones is a directory with clones of repositories, empty for none.
	Clones string
	// Remote allows calls to Git services, with the credentials in the cluster.
	Remote bool
	// GitHubURL is where the App is registered; empty for github-url of Plumbline's ConfigMap.
	GitHubURL string
	// System and ConfigMap are Plumbline's namespace and the name of its settings, which need not
	// exist.
	System, ConfigMap string
	// Events is how many of the last events of each Repository are compared.
	Events int
	// Version is Plumbline's.
	Version string
	// Requirements are the checks of the cluster's versions.
	Requirements []preflight.Check
}

// surveyor takes one survey.
type surveyor struct {
	Options
	collector
	cluster *kube.Cluster
}

// Take reads the cluster.
func Take(ctx context.Context, cluster *kube.Cluster, o Options) (*Report, error) {
	s := &surveyor{Options: o, cluster: cluster, collector: collector{findings: []Finding{}}}
	report := &Report{}
	s.requirements(ctx)
	var err error
	if report.Installations, err = s.installations(ctx); err != nil {
		return nil, err
	}
	moving, err := s.repositories(ctx, report.Installations)
	if err != nil {
		return nil, err
	}
	report.Repositories.Total = len(moving)
	if err := s.access(ctx, report.Installations); err != nil {
		return nil, err
	}
	if err := s.compareEvents(ctx, moving, &report.Events); err != nil {
		return nil, err
	}
	s.finish(report)
	return report, nil
}

// requirements reports what the cluster lacks.
func (s *surveyor) requirements(ctx context.Context) {
	for _, check := range s.Requirements {
		for _, finding := range check.Run(ctx) {
			if s.note(finding.Err) {
				continue
			}
			s.add(Finding{
				Kind: Blocks, Topic: Cluster, Says: finding.Object + " " + finding.Problem, Remedy: finding.Remedy,
			}, "", finding.Object)
		}
	}
}

// unlessForbidden returns an error that says what failed, nil if the account lacks the right.
func (s *surveyor) unlessForbidden(what string, err error) error {
	if err == nil || s.note(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
