// SPDX-License-Identifier: Apache-2.0

// Package tekton judges PipelineRuns as Tekton's webhook does when they are created, without a
// cluster.
package tekton

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tektoncd/pipeline/pkg/apis/config"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"knative.dev/pkg/apis"
)

// Refusal is why a PipelineRun would not be created.
type Refusal struct {
	// Message says who would refuse it and why, for people.
	Message string
	// Path is the field of the first reason, like spec.pipelineSpec.tasks[0].name; empty if it has
	// none.
	Path string
}

// Judge returns why a PipelineRun would be refused; nil if it would not. It allows what depends on
// the settings of a cluster: features behind flags, the number of combinations of a matrix, a
// default timeout that is longer than the run's own, and a default resolver.
func Judge(ctx context.Context, run *pipelinev1.PipelineRun) (*Refusal, error) {
	if errs := metadata(run); len(errs) > 0 {
		return &Refusal{Message: "Kubernetes would refuse it: " + join(errs), Path: errs[0].Field}, nil
	}
	var refusal *Refusal
	for _, timeout := range []string{noTimeout, longTimeout} {
		settings, err := lenient(timeout)
		if err != nil {
			return nil, err
		}
		if refusal = validate(config.ToContext(ctx, settings), run.DeepCopy()); refusal == nil {
			return nil, nil
		}
	}
	return refusal, nil
}

// validate sets Tekton's defaults in a PipelineRun. It returns why Tekton's webhook refuses the
// PipelineRun; nil if it does not. A PipelineRun that makes the webhook panic is refused, too.
func validate(ctx context.Context, run *pipelinev1.PipelineRun) (refusal *Refusal) {
	defer func() {
		if failed := recover(); failed != nil {
			refusal = &Refusal{Message: fmt.Sprintf("Tekton would refuse it: its webhook fails (%v)", failed)}
		}
	}()
	ctx = apis.WithinCreate(ctx)
	resolve(&run.Spec)
	run.SetDefaults(ctx)
	refused := run.Validate(ctx).Filter(apis.ErrorLevel)
	if refused == nil {
		return nil
	}
	refusal = &Refusal{Message: "Tekton would refuse it: " + strings.Join(strings.Split(refused.Error(), "\n"), "; ")}
	for _, wrapped := range refused.WrappedErrors() {
		if len(wrapped.Paths) > 0 {
			refusal.Path = wrapped.Paths[0]
			break
		}
	}
	return refusal
}

// metadata is what the API server says of the labels and annotations that the author has written.
func metadata(run *pipelinev1.PipelineRun) field.ErrorList {
	path := field.NewPath("metadata")
	errs := metavalidation.ValidateLabels(run.Labels, path.Child("labels"))
	return append(errs, apivalidation.ValidateAnnotations(run.Annotations, path.Child("annotations"))...)
}

func join(errs field.ErrorList) string {
	all := make([]string, len(errs))
	for i, err := range errs {
		all[i] = err.Error()
	}
	return strings.Join(all, "; ")
}

// The default timeouts that a cluster may have, in minutes. Without a timeout the tasks may run
// without an end, but a sum of timeouts is refused; with a long one it is the other way round.
const (
	noTimeout   = "0"
	longTimeout = "50000000"
)

// lenient are the settings of a Tekton that allows as much as any does with a default timeout.
func lenient(timeout string) (*config.Config, error) {
	flags, err := config.NewFeatureFlagsFromMap(map[string]string{
		"enable-api-fields":                config.AlphaAPIFields,
		config.EnableArtifacts:             "true",
		config.EnableCELInWhenExpression:   "true",
		config.EnableConciseResolverSyntax: "true",
		config.EnableParamEnum:             "true",
	})
	if err != nil {
		return nil, fmt.Errorf("reading the feature flags of Tekton: %w", err)
	}
	defaults, err := config.NewDefaultsFromMap(map[string]string{
		"default-timeout-minutes": timeout, "default-max-matrix-combinations-count": strconv.Itoa(math.MaxInt32),
	})
	if err != nil {
		return nil, fmt.Errorf("reading the defaults of Tekton: %w", err)
	}
	return &config.Config{FeatureFlags: flags, Defaults: defaults}, nil
}

// resolve gives references that have params and nothing else the resolver that a cluster may have
// for them.
func resolve(spec *pipelinev1.PipelineRunSpec) {
	if ref := spec.PipelineRef; ref != nil {
		byDefault(ref.Name, &ref.ResolverRef)
	}
	if spec.PipelineSpec == nil {
		return
	}
	for _, task := range slices.Concat(spec.PipelineSpec.Tasks, spec.PipelineSpec.Finally) {
		if ref := task.TaskRef; ref != nil {
			byDefault(ref.Name, &ref.ResolverRef)
		}
		if task.TaskSpec == nil {
			continue
		}
		for _, step := range task.TaskSpec.Steps {
			if ref := step.Ref; ref != nil {
				byDefault(ref.Name, &ref.ResolverRef)
			}
		}
	}
}

func byDefault(name string, ref *pipelinev1.ResolverRef) {
	if name == "" && ref.Resolver == "" && len(ref.Params) > 0 {
		ref.Resolver = "default"
	}
}
