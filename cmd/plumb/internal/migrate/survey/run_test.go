// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/delivery"
	pac "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
)

// The events of PipelineRuns are those that Pipelines-as-Code writes into their annotations.
func TestKindOfRecordedEvents(t *testing.T) {
	for name, test := range map[string]struct {
		service, eventType, base string
		kind                     delivery.Kind
		compared                 bool
	}{
		"pull request":                   {"github", "pull_request", "main", delivery.Opened, true},
		"merge request":                  {"gitlab", "Merge Request", "main", delivery.Opened, true},
		"push":                           {"github", "push", "refs/heads/main", delivery.Pushed, true},
		"push whose branch CEL has read": {"github", "push", "main", delivery.Pushed, true},
		"tag at GitHub":                  {"github", "push", "refs/tags/v1", delivery.Tagged, true},
		"tag at GitLab":                  {"gitlab", "Tag Push", "v1", delivery.Tagged, true},
		"push at GitLab":                 {"gitlab", "Push", "main", delivery.Pushed, true},
		"comment":                        {"github", "test-all-comment", "main", 0, false},
		"on-comment":                     {"github", "on-comment", "main", 0, false},
		"label":                          {"github", "pull_request_labeled", "main", 0, false},
		"incoming":                       {"github", "incoming", "main", 0, false},
		"a service that is not served":   {"bitbucket-cloud", "push", "main", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			kind, why := kindOf(test.service, test.eventType, test.base)
			if kind != test.kind || (why == "") != test.compared {
				t.Errorf("got %v, %q", kind, why)
			}
		})
	}
}

// PipelineRuns of one event are one event, the newest event is the first, and a pipeline counts as
// complete in the newest event that has it.
func TestEventsOfPipelineRuns(t *testing.T) {
	run := func(pipeline, eventType, branch string, minute int) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", CreationTimestamp: metav1.Time{Time: time.Unix(int64(minute)*60, 0)},
			Annotations: map[string]string{
				pac.Repository: "app", pac.OriginalPRName: pipeline, pac.EventType: eventType, pac.Branch: branch, pac.SHA: "1a",
				pac.RepoURL: "https://github.com/acme/app", pac.InstallationID: "9",
			},
		}}
	}
	events := eventsOf([]metav1.PartialObjectMetadata{
		run("build", "push", "refs/heads/main", 1), run("lint-", "push", "main", 2), run("build", "pull_request", "main", 3),
	})["team/app"]
	var got [][]string
	for _, e := range events {
		got = append(got, append([]string{e.base}, e.names...))
		if !e.byApp || e.sha != "1a" {
			t.Errorf("got %+v", e)
		}
	}
	if diff := cmp.Diff([][]string{{"main", "build"}, {"main", "build", "lint"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each known difference is recognized, and any other one is to be reported.
func TestDifferencesAreExplained(t *testing.T) {
	mistake := Pipeline{Name: "broken", Starts: No, Mistake: "BadYAML"}
	for name, test := range map[string]struct {
		pipelines []Pipeline
		started   []string
		page      string
	}{
		"a mistake of another file":  {[]Pipeline{mistake, {Name: "a", Starts: Yes}}, nil, pageOfStarting},
		"an expression of another":   {[]Pipeline{{Name: "b", Mistake: "BadExpression"}, {Name: "a", Starts: Yes}}, nil, ""},
		"a mistake that PaC ignores": {[]Pipeline{{Name: "a", Starts: No, Mistake: "BadExpression"}}, []string{"a"}, pageOfStarting},
		"a name with an underscore":  {[]Pipeline{{Name: "a_", Starts: Yes}}, nil, "docs/migration.md#objects-in-the-cluster"},
		"a reference":                {[]Pipeline{{Name: "a", Starts: No, Mistake: "MissingTask"}}, []string{"a"}, pageOfReferences},
		"a placeholder":              {[]Pipeline{{Name: "a", Starts: No, Mistake: "BadParam"}}, []string{"a"}, pageOfPlaceholders},
		"a limit":                    {[]Pipeline{{Name: "a", Starts: No, Mistake: "TooManySteps"}}, []string{"a"}, "docs/language.md#limits"},
		"started without a reason":   {[]Pipeline{{Name: "a", Starts: Yes}}, nil, ""},
		"not matched":                {[]Pipeline{{Name: "a", Starts: No, Why: "on-event does not match"}}, []string{"a"}, ""},
		"no definition":              {nil, []string{"a"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			all, _ := compare(&Planned{Pipelines: test.pipelines}, test.started, func(string) bool { return true })
			if len(all) != 1 || all[0].Page != test.page || !strings.HasPrefix(all[0].pipeline, "a") ||
				(all[0].Remedy != "") != (test.page == "") {
				t.Errorf("got %+v, want page %q", all, test.page)
			}
		})
	}
}
