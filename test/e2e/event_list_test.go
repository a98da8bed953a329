// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/forge"
)

// `kubectl get gitevents` shows the source and the disposition of each event, in the words that
// TestOutcome of pkg/status checks. The test reads the Table of the API server, which is what
// kubectl prints.
func TestEventListShowsDispositions(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1})

	succeeded, d := env.push(map[string]string{".tekton/run.yaml": pipeline("good", "push")})
	env.deliver(d, 202)
	env.awaitSettled(succeeded, soon)
	running := env.git.commit("topic",
		forge.Change{Files: map[string]string{".tekton/run.yaml": pipeline("pull", "pull_request", held)}, Message: "topic"})
	number := env.forge.OpenPullRequest(forge.NewPull{Base: repoName, HeadBranch: "topic", Title: "A change"})
	env.deliver(env.git.pulled(number, "opened"), 202)
	env.awaitRunsCreated(running)
	outage := env.git.inject(readDirectory, forge.Fault{Do: forge.ServerError502HTML()})
	waiting, d := env.push(map[string]string{".tekton/run.yaml": pipeline("later", "push")})
	env.deliver(d, 202)

	url := env.git.page()
	want := map[string]row{
		succeeded: {"Repository": url, "Ref": "main", "Outcome": "Succeeded"},
		running:   {"Repository": url, "Ref": fmt.Sprintf("#%d", number), "Outcome": "Running"},
		waiting:   {"Repository": url, "Ref": "main", "Outcome": "Waiting: GitServiceUnavailable"},
	}
	env.eventually(soon, "the list shows each event as it is", func() error {
		if diff := cmp.Diff(want, env.eventRows()); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
	outage.Remove()
	env.releaseRuns(env.awaitRunsCreated(running))
	env.awaitAllSettled(afterFault)
	for _, sha := range []string{running, waiting} {
		if got := env.eventRows()[sha]["Outcome"]; got != "Succeeded" {
			t.Errorf("in the end %s is %q, want Succeeded", sha, got)
		}
	}
}

// row is what the list shows of an event by default, by the column's name.
type row map[string]string

// eventRows returns the rows by commit. It requires the default columns and those of `-o wide`.
func (env *environment) eventRows() map[string]row {
	env.t.Helper()
	data, err := env.Plumbline.PlumblineV1alpha1().RESTClient().Get().Namespace(env.Namespace).Resource("gitevents").
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").Do(env.ctx).Raw()
	env.must(err)
	var table metav1.Table
	env.must(json.Unmarshal(data, &table))
	names := map[bool][]string{}
	for _, column := range table.ColumnDefinitions {
		wide := column.Priority > 0
		names[wide] = append(names[wide], column.Name)
	}
	always := []string{"Name", "Repository", "Ref", "Outcome", "Age"}
	wide := []string{"Trigger", "Sender", "Commit", "Disposition", "Ready", "Reason"}
	if !slices.Equal(names[false], always) || !slices.Equal(names[true], wide) {
		env.t.Fatalf("columns %q, and with -o wide %q; want %q and %q", names[false], names[true], always, wide)
	}
	rows := map[string]row{}
	for _, r := range table.Rows {
		shown, commit := row{}, ""
		for i, column := range table.ColumnDefinitions {
			switch text := fmt.Sprint(r.Cells[i]); {
			case column.Name == "Commit":
				commit = text
			case column.Priority == 0 && column.Name != "Name" && column.Name != "Age":
				shown[column.Name] = text
			}
		}
		rows[commit] = shown
	}
	return rows
}
