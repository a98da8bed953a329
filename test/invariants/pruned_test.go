// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
)

// Each run that is deleted too early is found.
func TestTheHistoryOfWhatIsPruned(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, want string
		play       func(p *tape) []Write
	}{
		{"the older one is deleted when it is reported", "", func(p *tape) []Write {
			p.ends("old", "new")
			w := Write{ExternalID: "old", Conclusion: "success", Applied: true, At: p.at}
			p.deletes("old")
			return []Write{w}
		}},
		{"Tekton has ended it once more after its event noted the end", "", func(p *tape) []Write {
			p.ends("old", "new", "old")
			w := Write{ExternalID: "old", Conclusion: "success", Applied: true, At: p.at}
			p.deletes("old")
			return []Write{w}
		}},
		{"its result is accepted later", "has not accepted its result before", func(p *tape) []Write {
			p.ends("old", "new")
			p.deletes("old")
			return []Write{{ExternalID: "old", Conclusion: "success", Applied: true, At: p.at.Add(time.Second)}}
		}},
		{"its result was sent and not accepted", "has not accepted its result before", func(p *tape) []Write {
			p.ends("old", "new")
			p.deletes("old")
			return []Write{{ExternalID: "old", Conclusion: "success", At: p.at.Add(-time.Second)}}
		}},
		{"it is not over", "is not over", func(p *tape) []Write {
			p.runs("old")
			p.deletes("old")
			return nil
		}},
		{"nothing newer is kept", "of its pipeline 0 are kept", func(p *tape) []Write {
			p.ends("older", "old")
			p.deletes("old")
			return nil
		}},
		{"all are to be kept", "all of its pipeline are to be kept", func(p *tape) []Write {
			old := p.made("old", corev1.ConditionTrue)
			old.Annotations[pipelinesascode.MaxKeepRuns] = "abc"
			p.tell(theRuns, "old", old)
			p.deletes("old")
			return nil
		}},
	} {
		p := &tape{t: t, at: time.Unix(1000, 0).UTC(), History: History{Installation: "ns"}}
		e := &Evidence{Writes: c.play(p)}
		e.Remember(p.Pruned())
		if found := fmt.Sprint(e.Early(p.Pruned())); found != "[]" && c.want == "" || !strings.Contains(found, c.want) {
			t.Errorf("%s: found %s, want %q", c.what, found, c.want)
		}
		if len(e.Made()) != 1 {
			t.Errorf("%s: %d PipelineRuns are remembered, want the deleted one", c.what, len(e.Made()))
		}
	}
}

// What a PipelineRun has said of its report stays known, whatever Tekton writes over it.
func TestAMarkIsRemembered(t *testing.T) {
	p := &tape{t: t, at: time.Unix(1000, 0).UTC(), History: History{Installation: "ns"}}
	marked := p.made("a", corev1.ConditionTrue)
	marked.Labels[pipelinesascode.State] = pipelinesascode.StateCompleted
	p.tell(theRuns, "a", marked)
	p.ends("a", "b")
	if all := p.Marked(); len(all) != 1 || !all["uid-of-a"] {
		t.Errorf("marked are %v, want a", all)
	}
}
