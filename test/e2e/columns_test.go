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

// `kubectl get gitevents` tells events apart: where they are from and what became of them, in the
// words of TestOutcome of pkg/status. What it prints is the Table that the API server makes.
func TestTheListOfEventsTellsWhatBecameOfThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()

	succeeded, d := w.push(map[string]string{".tekton/run.yaml": pipeline("good", "push")})
	w.deliver(d, 202)
	w.settles(succeeded, soon)
	running := w.git.commit("topic", forge.Change{Files: map[string]string{".tekton/run.yaml": pipeline("pull", "pull_request", held)}, Message: "topic"})
	number := w.forge.OpenPullRequest(forge.NewPull{Base: repoName, HeadBranch: "topic", Title: "A change"})
	w.deliver(w.git.pulled(number, "opened"), 202)
	w.created(running)
	outage := w.git.inject(readDirectory, forge.Fault{Do: forge.ServerError502HTML()})
	waiting, d := w.push(map[string]string{".tekton/run.yaml": pipeline("later", "push")})
	w.deliver(d, 202)

	url := w.git.page()
	want := map[string]row{
		succeeded: {"Repository": url, "Ref": "main", "Outcome": "Succeeded"},
		running:   {"Repository": url, "Ref": fmt.Sprintf("#%d", number), "Outcome": "Running"},
		waiting:   {"Repository": url, "Ref": "main", "Outcome": "Waiting: GitServiceUnavailable"},
	}
	w.eventually(soon, "the list shows each event as it is", func() error {
		if diff := cmp.Diff(want, w.listed()); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
	outage.Remove()
	w.release(w.created(running))
	w.settled(afterFault)
	for _, sha := range []string{running, waiting} {
		if got := w.listed()[sha]["Outcome"]; got != "Succeeded" {
			t.Errorf("in the end %s is %q, want Succeeded", sha, got)
		}
	}
}

// row is what the list shows of an event without being asked for more, by the column's name.
type row map[string]string

// listed are the rows by commit. It requires the columns: those shown always, and those of `-o
// wide`.
func (w *world) listed() map[string]row {
	w.t.Helper()
	data, err := w.Plumbline.PlumblineV1alpha1().RESTClient().Get().Namespace(w.Namespace).Resource("gitevents").
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").Do(w.ctx).Raw()
	w.must(err)
	var table metav1.Table
	w.must(json.Unmarshal(data, &table))
	names := map[bool][]string{}
	for _, column := range table.ColumnDefinitions {
		wide := column.Priority > 0
		names[wide] = append(names[wide], column.Name)
	}
	always := []string{"Name", "Repository", "Ref", "Outcome", "Age"}
	wide := []string{"Trigger", "Sender", "Commit", "Disposition", "Ready", "Reason"}
	if !slices.Equal(names[false], always) || !slices.Equal(names[true], wide) {
		w.t.Fatalf("columns %q, and with -o wide %q; want %q and %q", names[false], names[true], always, wide)
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
