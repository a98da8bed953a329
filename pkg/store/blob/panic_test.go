// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

type poison struct{ creator }

func (poison) Create(context.Context, *v1alpha1.EventPayload, metav1.CreateOptions) (*v1alpha1.EventPayload, error) {
	panic("poison")
}

// A panic while a payload is written is passed to the caller, which may catch it. It does not end
// the process.
func TestWritePassesPanicsToTheCaller(t *testing.T) {
	t.Parallel()
	defer func() {
		if text, ok := recover().(string); !ok || !strings.HasPrefix(text, "poison") {
			t.Errorf("recovered %v", text)
		}
	}()
	err := Write(t.Context(), poison{}, []*v1alpha1.EventPayload{{}})
	t.Errorf("returned %v", err)
}
