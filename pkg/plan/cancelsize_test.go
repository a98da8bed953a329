// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// Whatever the author of a pull request writes after /cancel, its events have room for the
// annotation of a close: the API server accepts 256 KiB of annotations.
func TestCloseCancelsAfterManyCancellations(t *testing.T) {
	t.Parallel()
	for what, one := range map[string]string{"letters": "x", "escapes": "<", "controls": "\x01", "separators": "\u2028"} {
		e := &v1alpha1.GitEvent{}
		e.Annotations = map[string]string{}
		takes := func(n int, made *plan.Plan) bool { // as the API server does
			name, value, err := made.Cancels.CancelsAs(fmt.Sprintf("comment-%032d", n))
			if err != nil {
				t.Fatal(err)
			}
			if e.Annotations[name] = value; validation.ValidateAnnotationsSize(e.Annotations) == nil {
				return true
			}
			delete(e.Annotations, name)
			return false
		}
		sizes := make([]int, 0, 200)
		for range 50 {
			sizes = append(sizes, 4080/len(one))
		}
		for size := 3000 / len(one); size > 0; size -= size/20 + 1 {
			sizes = append(sizes, size)
		}
		for i, size := range sizes {
			in := happened(commented())
			in.Event.Spec.Sender = "author"
			w := written(fmt.Sprintf("/cancel %s%d", strings.Repeat(one, size), i))
			if made := w.make(t, in); made.Cancels != nil && e.Needs(made.Cancels) {
				takes(i, made)
			}
		}
		in := happened(forked())
		in.Event.Spec.Action, in.Event.Spec.Actor = "closed", "maintainer"
		if made := (&env{}).make(t, in); !e.Needs(made.Cancels) || !takes(len(sizes), made) {
			t.Errorf("%s: after %d cancellations there is no room for a close", what, len(e.Annotations))
		}
	}
}
