// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// The name of a later attempt fits a label, is another one for each attempt, and proves that
// Plumbline has planned the run.
func TestAttemptNamesFitAndAreProven(t *testing.T) {
	t.Parallel()
	for _, pipeline := range []string{"b", "build", strings.Repeat("x", 80), strings.Repeat("x", 46) + "----y"} {
		first := RunName("push-1", ".tekton/a.yaml", 0, pipeline)
		names := map[string]bool{first: true}
		for attempt, label := range map[int]string{2: "2", 3: "3", 4: "4"} {
			name := AttemptName(first, attempt)
			if names[name] || len(name) > maxRunName || !strings.HasSuffix(name, first[len(first)-hashLength:]+"-"+label) {
				t.Errorf("attempt %d of %s is called %s", attempt, first, name)
			}
			names[name] = true
			run := &metav1.ObjectMeta{
				Name:   name,
				Labels: map[string]string{plumbline.EventLabel: "push-1", plumbline.AttemptLabel: label},
				Annotations: map[string]string{
					plumbline.RunKeyAnnotation: "plumbline/push-1/.tekton/a.yaml#0", pipelinesascode.OriginalPRName: pipeline,
				},
			}
			if !Named(run, "plumbline") || FirstName(run, "plumbline") != first {
				t.Errorf("%s is not proven; its first attempt is %s, want %s", name, FirstName(run, "plumbline"), first)
			}
			for _, wrong := range []string{"1", "5", "x", ""} {
				run.Labels[plumbline.AttemptLabel] = wrong
				if Named(run, "plumbline") || FirstName(run, "plumbline") != name {
					t.Errorf("%s counts as attempt %q", name, wrong)
				}
			}
		}
	}
}
