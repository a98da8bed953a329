// SPDX-License-Identifier: Apache-2.0

package github

import (
	"fmt"
	"slices"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

func lines(n int) (all []v1alpha1.SourceLine) {
	for i := range n {
		all = append(all, v1alpha1.SourceLine{Path: "a.go", Line: int32(i + 1), Message: fmt.Sprint("wrong ", i+1)})
	}
	return all
}

// annotated returns the messages of the annotations of the one check.
func (b bench) annotated(t *testing.T) (messages []string) {
	t.Helper()
	runs := b.ChecksFor(testRepo, b.head.SHA)
	if len(runs) != 1 || runs[0].Status != "completed" || runs[0].Conclusion != "failure" || runs[0].Text != "the log" {
		t.Fatalf("the check is %+v", runs)
	}
	for i, a := range runs[0].Annotations {
		if a.Path != "a.go" || a.StartLine != i+1 || a.EndLine != i+1 || a.Level != "failure" {
			t.Errorf("annotation %d is %+v", i, a)
		}
		messages = append(messages, a.Message)
	}
	return messages
}

// GitHub takes 50 annotations at a time. What it has is not sent again, wherever an earlier attempt
// has stopped. The check stays as it is.
func TestAnnotateSendsWhatIsMissing(t *testing.T) {
	for _, before := range []int{0, 1, 50, 100, 119, 120} {
		b := newBench(t)
		failed := check(status.Completed, status.Failure)
		failed.Text = "the log"
		id := b.duplicate(t, failed)
		for _, n := range []int{before, 120, 120} {
			if err := b.client.Annotate(t.Context(), id, failed, lines(120)[:n]); err != nil {
				t.Fatal(err)
			}
		}
		var want []string
		for _, line := range lines(120) {
			want = append(want, line.Message)
		}
		if got := b.annotated(t); !slices.Equal(got, want) {
			t.Errorf("after %d: %v", before, got)
		}
	}
}

func TestAnnotateFailsNothing(t *testing.T) {
	b := newBench(t)
	failed := check(status.Completed, status.Failure)
	for _, id := range []string{"999999", ""} {
		if err := b.client.Annotate(t.Context(), id, failed, lines(1)); err != nil || len(b.shown()) != 0 {
			t.Errorf("a check that does not exist: %v, %v", err, b.shown())
		}
	}
	id := b.duplicate(t, failed)
	fence := fmt.Errorf("another process leads")
	fenced := provider.Fenced(t.Context(), func() error { return fence })
	if err := b.client.Annotate(fenced, id, failed, lines(1)); err == nil {
		t.Error("the fence does not hold")
	}
}
