// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// hanging is an API server that does not answer.
type hanging struct{ tektonv1.TektonV1Interface }

func (hanging) TaskRuns(string) tektonv1.TaskRunInterface { return list{} }

type list struct{ tektonv1.TaskRunInterface }

func (list) List(ctx context.Context, _ metav1.ListOptions) (*pipelinev1.TaskRunList, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A list that hangs leaves time for the rest of the reconcile, and gives no verdict.
func TestHangingListEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 35*time.Second)
		defer cancel()
		_, _, err := readTaskRuns(ctx, hanging{}, nil, &v1alpha1.Run{Namespace: "team", Name: "run"})
		if !fault.Is(err, fault.Transient) || ctx.Err() != nil {
			t.Errorf("%v; the reconcile: %v", err, ctx.Err())
		}
	})
}
