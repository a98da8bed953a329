// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// As many cancellations as an event takes note of fit into its annotations, of which the API server takes 256 KiB, whatever their names are: the
// author of a pull request may write any. Otherwise nobody could cancel or close it any more.
func TestAllCancellationsFitIntoTheAnnotations(t *testing.T) {
	t.Parallel()
	const most = 256 << 10
	for what, one := range map[string]string{"letters": "x", "escapes": "<", "controls": "\x01", "separators": "\u2028"} {
		e := &v1alpha1.GitEvent{}
		e.Annotations = map[string]string{}
		total := 0
		for i := range v1alpha1.MaxCancellations {
			in := happened(commented())
			in.Event.Spec.Sender = "author"
			w := written("/cancel " + strings.Repeat("a", i) + strings.Repeat(one, (4096-i)/len(one)))
			made := w.make(t, in)
			if made.Cancels == nil || !e.Needs(made.Cancels) {
				continue
			}
			name, value, err := made.Cancels.CancelsAs("comment-" + strings.Repeat("0", 30))
			if err != nil {
				t.Fatal(err)
			}
			e.Annotations[name+strings.Repeat("i", i)] = value
			total += len(name) + len(value)
		}
		if total > most {
			t.Errorf("%s: %d cancellations take %d bytes, and an object has room for %d", what, len(e.Annotations), total, most)
		}
	}
}
