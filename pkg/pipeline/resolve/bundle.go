// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"strings"

	pipelinev1beta1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1beta1"
	"knative.dev/pkg/apis"
)

// keepBundles turns the bundles of v1beta1 documents into references to Tekton's bundles resolver.
// v1 has no other way to name a bundle. Tekton's conversion drops bundles, which would leave a
// reference to another Task.
func keepBundles(old apis.Convertible) {
	switch old := old.(type) {
	case *pipelinev1beta1.PipelineRun:
		if ref := old.Spec.PipelineRef; ref != nil && ref.Bundle != "" {
			ref.ResolverRef = bundle(ref.Bundle, ref.Name, kindPipeline)
			ref.Bundle, ref.Name = "", ""
		}
		keepTaskBundles(old.Spec.PipelineSpec)
	case *pipelinev1beta1.Pipeline:
		keepTaskBundles(&old.Spec)
	}
}

func keepTaskBundles(spec *pipelinev1beta1.PipelineSpec) {
	if spec == nil {
		return
	}
	for _, tasks := range [][]pipelinev1beta1.PipelineTask{spec.Tasks, spec.Finally} {
		for _, task := range tasks {
			if ref := task.TaskRef; ref != nil && ref.Bundle != "" {
				ref.ResolverRef = bundle(ref.Bundle, ref.Name, kindTask)
				ref.Bundle, ref.Name, ref.Kind = "", "", ""
			}
		}
	}
}

func bundle(image, name, kind string) pipelinev1beta1.ResolverRef {
	text := func(name, value string) pipelinev1beta1.Param {
		return pipelinev1beta1.Param{Name: name, Value: *pipelinev1beta1.NewStructuredValues(value)}
	}
	return pipelinev1beta1.ResolverRef{
		Resolver: "bundles",
		Params:   pipelinev1beta1.Params{text("bundle", image), text("name", name), text("kind", strings.ToLower(kind))},
	}
}
