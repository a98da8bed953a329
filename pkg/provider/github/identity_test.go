// SPDX-License-Identifier: Apache-2.0

package github

import (
	"regexp"
	"testing"
	"time"
)

// GitHub signs the body but not X-GitHub-Delivery: a body is the same event with every id. The body
// contains the time of its event, so an otherwise equal event (a tag that is created again, for
// example) is another one.
func TestEventNameIgnoresDeliveryID(t *testing.T) {
	name := func(event, id string, body []byte) string {
		t.Helper()
		spec, err := webhook{}.Decode(headers(event, "X-GitHub-Delivery", id), body)
		if err != nil {
			t.Fatal(err)
		}
		if spec.DeliveryKey != id || spec.Headers["X-Github-Delivery"] != id {
			t.Errorf("the record has the delivery %s and the headers %v, want %s: people find it by that", spec.DeliveryKey,
				spec.Headers, id)
		}
		return spec.EventName()
	}
	for _, c := range []struct{ file, event, member, at, later string }{
		{"push-branch.json", "push", "pushed_at", "1777712400", "1777712401"},
		{"push-new-branch.json", "push", "pushed_at", "1777712400", "1777712401"},
		{"push-tag-annotated.json", "push", "pushed_at", "1777712400", "1777712401"},
		{"push-tag-lightweight.json", "push", "pushed_at", "1777712400", "1777712401"},
		{"push-tag-lightweight.json", "push", "pushed_at", "1777712400", `"2026-05-02T09:00:01Z"`},
		{"pull-opened-fork.json", "pull_request", "updated_at", `"2026-05-02T09:00:00Z"`, `"2026-05-02T09:00:01Z"`},
		{"pull-labeled.json", "pull_request", "updated_at", `"2026-05-02T09:00:00Z"`, `"2026-05-02T09:00:01Z"`},
		{"pull-synchronize-branch.json", "pull_request", "updated_at", `"2026-05-02T09:00:00Z"`, `"2026-05-02T09:00:01Z"`},
		{"merge-group-requested.json", "merge_group", "timestamp", `"2026-05-02T09:00:00Z"`, `"2026-05-02T09:00:01Z"`},
		{commentCreated, "issue_comment", "created_at", `"2026-05-02T09:00:00Z"`, `"2026-05-02T09:00:01Z"`},
		{remarkCreated, "commit_comment", "created_at", `"2026-05-02T09:00:00Z"`, `"2026-05-02T09:00:01Z"`},
		{checkRerequested, "check_run", "updated_at", `"2026-05-02T09:00:00Z"`, `"2026-05-02T09:00:01Z"`},
		{suiteRerequested, "check_suite", "updated_at", `"2026-05-02T09:00:00Z"`, `"2026-05-02T09:00:01Z"`},
	} {
		t.Run(c.file, func(t *testing.T) {
			member := regexp.MustCompile(`"` + c.member + `":\s*[^,\n]+`)
			with := func(value string) []byte {
				return member.ReplaceAll(recorded(t, c.file), []byte(`"`+c.member+`": `+value))
			}
			first := name(c.event, "id-1", with(c.at))
			if again := name(c.event, "id-2", with(c.at)); again != first {
				t.Errorf("the same body under another id is %s, want %s", again, first)
			}
			if later := name(c.event, "id-1", with(c.later)); later == first {
				t.Error("what happened a second later is the same event")
			}
			for _, none := range []string{"null", `"yesterday"`, "0", "[]"} {
				if name(c.event, "id-1", with(none)) == name(c.event, "id-2", with(none)) {
					t.Errorf("a body whose time is %s does not tell one event from another, and two ids are one event", none)
				}
			}
		})
	}
}

func TestHappenedAtOfDeliveries(t *testing.T) {
	spec, err := webhook{}.Decode(headers("push"), recorded(t, "push-branch.json"))
	if err != nil || !spec.Body.At.Time.Equal(time.Date(2026, 5, 2, 9, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v, %v", spec.Body, err)
	}
}
