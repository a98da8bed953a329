// SPDX-License-Identifier: Apache-2.0

package deps

import (
	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	"k8s.io/client-go/metadata"
)

// Tekton is how the reconciler reaches Tekton's objects.
type Tekton struct {
	tektonv1.TektonV1Interface
	// Metadata lists PipelineRuns without their specs, of which one may have 1.5 MiB.
	Metadata metadata.Getter
}
