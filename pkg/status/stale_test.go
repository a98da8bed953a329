// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestStale(t *testing.T) {
	running := Check{Key: "a", State: InProgress, Title: "CI has Started"}
	failed := Check{Key: "a", State: Completed, Conclusion: Failure}
	worded := failed
	worded.Text = "more words"
	cases := []struct {
		name     string
		desired  Check
		accepted []v1alpha1.Check
		stale    bool
	}{
		{"what was never sent is sent", running, nil, true},
		{"what was meant to be sent is sent", running, []v1alpha1.Check{{Key: "a", Intent: true}}, true},
		{"what was accepted is not sent again", running, []v1alpha1.Check{{Key: "a", Accepted: Digest(running)}}, false},
		{"what another check accepted does not count", running, []v1alpha1.Check{{Key: "b", Accepted: Digest(running)}},
			true},
		{"what changed is sent", failed, []v1alpha1.Check{{Key: "a", Accepted: Digest(running)}}, true},
		{"a concluded check is not reopened", running,
			[]v1alpha1.Check{{Key: "a", Accepted: Digest(failed), Concluded: true}}, false},
		{"a concluded check may get other words", worded,
			[]v1alpha1.Check{{Key: "a", Accepted: Digest(failed), Concluded: true}}, true},
		{"a concluded check that is as it should be is left alone", failed,
			[]v1alpha1.Check{{Key: "a", Accepted: Digest(failed), Concluded: true}}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := len(Stale([]Check{c.desired}, c.accepted)) == 1; got != c.stale {
				t.Errorf("stale is %v, want %v", got, c.stale)
			}
		})
	}
}

func TestDigest(t *testing.T) {
	base := Check{
		Key: "a", Name: "n", ExternalID: "e", State: Completed, Conclusion: Success, Title: "t", Summary: "s", Text: "x",
		DetailsURL: "u", StartedAt: at(1), CompletedAt: at(2),
	}
	for name, change := range map[string]func(*Check){
		"Key": func(c *Check) { c.Key = "" }, "Name": func(c *Check) { c.Name = "" },
		"ExternalID": func(c *Check) { c.ExternalID = "" },
		"State":      func(c *Check) { c.State = Queued }, "Conclusion": func(c *Check) { c.Conclusion = Failure },
		"Title": func(c *Check) { c.Title = "" }, "Summary": func(c *Check) { c.Summary = "" },
		"Text":       func(c *Check) { c.Text = "" },
		"DetailsURL": func(c *Check) { c.DetailsURL = "" }, "StartedAt": func(c *Check) { c.StartedAt = nil },
		"CompletedAt": func(c *Check) { c.CompletedAt = at(3) },
	} {
		other := base
		change(&other)
		if Digest(other) == Digest(base) {
			t.Errorf("Digest does not see %s", name)
		}
	}

	stored := base
	stored.CompletedAt = &metav1.Time{Time: base.CompletedAt.Add(987 * time.Millisecond).In(time.FixedZone("x", 3600))}
	data, err := json.Marshal(stored.CompletedAt)
	if err != nil {
		t.Fatal(err)
	}
	var read metav1.Time
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	before := Digest(stored)
	stored.CompletedAt = &read
	if Digest(stored) != before || before != Digest(base) {
		t.Error("Digest changes when the times have been through the API server")
	}
}
