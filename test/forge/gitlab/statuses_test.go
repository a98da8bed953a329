// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStatusTransitions(t *testing.T) {
	cannot := func(event, from string) string {
		return "400 Cannot transition status via :" + event + " from :" + from +
			` (Reason(s): Status cannot transition via "` + event + `")`
	}
	for name, tc := range map[string]struct {
		posts string // states, one after the other
		last  string // what the last one is answered
		left  string // all statuses: state, * if retried
	}{
		"a first status may be pending":               {"pending", "201", "pending"},
		"a first status may be running":               {"running", "201", "running"},
		"a first status may be finished":              {"success", "201", "success"},
		"a first status may be canceled":              {"canceled", "201", "canceled"},
		"a first status may be skipped":               {"skipped", "201", "skipped"},
		"pending takes running":                       {"pending running", "201", "running"},
		"pending takes skipped":                       {"pending skipped", "201", "skipped"},
		"pending takes a result":                      {"pending failed", "201", "failed"},
		"running takes a result":                      {"running success", "201", "success"},
		"running takes canceled":                      {"running canceled", "201", "canceled"},
		"pending refuses pending":                     {"pending pending", cannot("enqueue", "pending"), "pending"},
		"running refuses running":                     {"running running", cannot("run", "running"), "running"},
		"running refuses pending":                     {"running pending", cannot("enqueue", "running"), "running"},
		"running refuses skipped":                     {"running skipped", cannot("skip", "running"), "running"},
		"after a result a new status is made":         {"success running", "201", "success* running"},
		"after a result the same result is a new one": {"failed failed", "201", "failed* failed"},
		"after skipped a new status is made":          {"skipped pending", "201", "skipped* pending"},
		"an unknown state is refused":                 {"neutral", "400 state does not have a valid value", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{})
			var r reply
			for _, state := range strings.Fields(tc.posts) {
				r = w.post(map[string]any{"state": state, "name": "ci"})
			}
			got := strings.TrimSpace(fmt.Sprint(r.status, " ", r.said()))
			if got != tc.last {
				t.Errorf("the last post: got %s, want %s", got, tc.last)
			}
			var left []string
			for _, s := range w.StatusesFor(app, w.sha) {
				mark := ""
				if s.Retried {
					mark = "*"
				}
				left = append(left, s.State+mark)
			}
			if diff := cmp.Diff(tc.left, strings.Join(left, " ")); diff != "" {
				t.Errorf("statuses (-want +got):\n%s", diff)
			}
		})
	}
}
