// SPDX-License-Identifier: Apache-2.0

package lost_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// A redelivery makes the event again while the check of its run is being closed. Its verdict may have been there already, and was
// overwritten: it is reported once more. A run that somebody follows again is not labelled, because the label would hide it from them.
func TestTheVerdictOfARedeliveryWins(t *testing.T) {
	t.Parallel()
	down := fault.Transientf(fault.ReasonGitUnavailable, "502, and it is stored")
	for name, c := range map[string]struct {
		change func(e *v1alpha1.GitEvent)
		first  error // the answer to the report that closes the check
		want   []status.Conclusion
	}{
		"it has ended":                         {func(e *v1alpha1.GitEvent) { e.MarkTrue(v1alpha1.GitEventReported, "", "") }, nil, []status.Conclusion{status.Cancelled, status.Success}},
		"it has, and nobody answers the first": {func(*v1alpha1.GitEvent) {}, down, []status.Conclusion{status.Cancelled, status.Success}},
		"its run goes on":                      {func(e *v1alpha1.GitEvent) { e.Status.Runs[0].Result = nil }, nil, []status.Conclusion{status.Cancelled}},
		"nothing is planned yet":               {func(e *v1alpha1.GitEvent) { e.Status = v1alpha1.GitEventStatus{} }, nil, []status.Conclusion{status.Cancelled}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.refuse = c.first
			w.during = func(events plumblineclient.GitEventInterface) {
				event := recorded()
				c.change(event)
				if _, err := events.Create(context.Background(), event, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
			w.start()
			if asked, err := w.close(); !asked || err != nil && c.first == nil {
				t.Fatal(asked, err)
			}
			var got []status.Conclusion
			for _, p := range w.puts {
				got = append(got, p.check.Conclusion)
				if closes := p.check.Conclusion == status.Cancelled; p.check.OnlyOpen != closes || (p.id == "") == closes {
					t.Errorf("reported %+v with the id %q", p.check, p.id)
				}
			}
			if len(got) != len(c.want) || got[0] != c.want[0] || got[len(got)-1] != c.want[len(c.want)-1] || len(w.patches) != 0 {
				t.Errorf("reported %v, want %v; patched %v", got, c.want, w.patches)
			}
		})
	}
}
