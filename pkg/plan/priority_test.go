// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// prioritizing is a push to a Repository with a concurrency limit and a queue_priority.
func prioritizing(priority string) plan.Input {
	in, limit := push(), 1
	in.Repository.Spec.ConcurrencyLimit = &limit
	in.Repository.Spec.Settings = &pacv1alpha1.Settings{QueuePriority: priority}
	return in
}

func shownPriority(made *plan.Plan) string {
	if made.Priority == nil {
		return "none"
	}
	return fmt.Sprint(*made.Priority)
}

// The expression is evaluated once for an event, when its first run is decided. Any error gives 0,
// delays no run, and is shown in the decision.
func TestPriority(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*env, *plan.Input)
		text   string
		want   string
		says   string
		asked  string // how often it is asked
		times  int
	}{
		"a push":        {text: `event == "push" ? 20 : 0`, want: "20"},
		"no expression": {want: "none"},
		"nothing runs":  {text: "5", want: "none", change: func(w *env, _ *plan.Input) { w.files = nil }},
		"there is no limit": {text: "body.x", want: "none",
			change: func(_ *env, in *plan.Input) { in.Repository.Spec.ConcurrencyLimit = nil }, asked: "payload"},
		"too much": {
			text: "1000", want: "100", says: "settings.queue_priority: it is beyond 100, and counts as that",
		},
		"no number": {text: "true", want: "0", says: "does not give a whole number"},
		"the payload": {text: `body.urgent ? 7 : 0`, want: "7",
			change: func(w *env, _ *plan.Input) { w.payload = `{"urgent":true}` }, asked: "payload", times: 1},
		"the payload is not readable": {text: `body.urgent ? 7 : 0`, want: "0", says: "it counts as 0",
			change: func(w *env, _ *plan.Input) { w.payloadErr = down() }, asked: "payload", times: 1},
		"the changed files are cut off": {text: `files.all.exists(f, f == "x") ? 7 : 0`, want: "0", says: "it counts as 0",
			change: func(w *env, _ *plan.Input) { w.changedErr = down() }, asked: "changed", times: 1},
		"what pipelines read, too": {text: `files.all.exists(f, f == "docs/x") ? 7 : 0`, want: "7",
			change: func(w *env, _ *plan.Input) {
				w.files, w.changed = []git.File{pipeline("docs", `on-path-change: "[docs/**]"`)},
					git.Changes{Added: []string{"docs/x"}}
			}, asked: "changed", times: 1},
		"an author's expressions take all steps": {
			text: `event == "push" ? 20 : 0`, want: "20", change: func(w *env, _ *plan.Input) {
				w.files = []git.File{pipeline("a")}
				long := strings.Repeat("[1,2,3,4,5,6,7,8,9,10].map(x, ", 6) + "1" + strings.Repeat(")", 6) + ".size() > 0"
				for i := range 12 {
					w.files = append(w.files, git.File{Path: fmt.Sprint(".tekton/0", i, ".yaml"),
						Data: pipeline(fmt.Sprint("greedy", i), `on-cel-expression: "`+long+`"`).Data})
				}
			}},
		"it was evaluated before": {text: "50", want: "3", change: func(_ *env, in *plan.Input) {
			before := int32(3)
			in.Earlier = &plan.Earlier{Commits: plan.Commits{HeadSHA: sha, DefinitionSHA: sha}, Priority: &before}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w, in := &env{files: []git.File{pipeline("a"), pipeline("b")}, payload: "{}"}, prioritizing(test.text)
			if test.change != nil {
				test.change(w, &in)
			}
			made := w.make(t, in)
			if got := shownPriority(made); got != test.want {
				t.Errorf("the priority is %s, want %s: %v", got, test.want, reasons(made))
			}
			if len(w.files) > 0 && len(created(made)) == 0 || made.Wait != nil {
				t.Errorf("%v are created, waits for %v: %v", created(made), made.Wait, reasons(made))
			}
			for pipeline, reason := range reasons(made) {
				if told := strings.Contains(reason, "settings.queue_priority"); told != (test.says != "") ||
					!strings.Contains(reason, test.says) {
					t.Errorf("%s: %s; want %q", pipeline, reason, test.says)
				}
			}
			if test.asked != "" && w.count(test.asked) != test.times {
				t.Errorf("%s is asked for %d times, want %d", test.asked, w.count(test.asked), test.times)
			}
		})
	}
}

// A secret param that the expression reads appears in no message.
func TestPriorityHidesSecrets(t *testing.T) {
	in := prioritizing("int(token)")
	in.Repository.Spec.Params = &[]pacv1alpha1.Params{{Name: "token", SecretRef: &pacv1alpha1.Secret{Name: "s", Key: "k"}}}
	w := &env{files: []git.File{pipeline("a")}}
	if got := reasons(w.make(t, in))["a"]; !strings.Contains(got, "there is no s") {
		t.Errorf("a missing secret: %s", got)
	}
	w.secrets = map[template.SecretRef]string{{Name: "s", Key: "k"}: "hunter-2-two"}
	if got := reasons(w.make(t, in))["a"]; !strings.Contains(got, "it counts as 0") || strings.Contains(got, "hunter") {
		t.Errorf("a secret that is no number: %s", got)
	}
}
