// SPDX-License-Identifier: Apache-2.0

package language

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/match"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
	"github.com/plumbline-ci/plumbline/pkg/resolve"
	"github.com/plumbline-ci/plumbline/pkg/template"
)

var update = flag.Bool("update", false, "write the golden files")

// selection is one payload and the pipelines that meet it.
type selection struct {
	// Event is GitHub's name of the event, Payload a file of pkg/provider/github/testdata.
	Event, Payload string
	// Changed are the changed files, if anybody asks.
	Changed match.Changes
	// Params are the Repository's.
	Params []template.Param
	// Pipelines are sentences and annotations without their common prefix.
	Pipelines []struct {
		Name        string
		Annotations map[string]string
	}
}

// The golden file of a selection holds, for each pipeline, what was looked up for it, whether it is selected, and why.
func TestSelection(t *testing.T) {
	files, err := filepath.Glob("testdata/selection/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var s selection
			if err := yaml.UnmarshalStrict(data, &s); err != nil {
				t.Fatal(err)
			}
			compare(t, strings.TrimSuffix(file, ".yaml")+".golden", s.decide(t))
		})
	}
}

func (s *selection) decide(t *testing.T) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("../../pkg/provider/github/testdata", s.Payload))
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"X-Github-Event": {s.Event}, "X-Github-Delivery": {"1"}, "Content-Type": {"application/json"}}
	spec, err := github.New(github.Options{}).Webhook.Decode(header, body)
	if err != nil {
		t.Fatal(err)
	}
	spec.Repository.Namespace = "team"
	var payload map[string]any
	if err := json.Unmarshal(body, &payload); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, p := range s.Pipelines {
		annotations := map[string]string{}
		for name, value := range p.Annotations {
			annotations[pipelinesascode.GroupName+"/"+name] = value
		}
		title := ""
		if spec.Commit != nil {
			title = spec.Commit.Title
		}
		event := match.Of(spec, title)
		scope, err := template.New(template.Facts{Key: "event", Variables: resolve.Variables(spec, provider.Head{SHA: spec.SHA}, "team"), Params: s.Params})
		if err != nil {
			t.Fatal(err)
		}
		event.Params = scope.Params()
		fmt.Fprintf(&b, "%s\n    %s\n", p.Name, s.answer(event, match.Pipeline{Name: "build", Annotations: annotations}, payload))
	}
	return b.String()
}

// answer looks up what is asked for, as the controller does.
func (s *selection) answer(event match.Event, p match.Pipeline, payload map[string]any) string {
	asked := ""
	for range 3 {
		d, err := match.Select(event, p)
		switch {
		case err != nil && !fault.Is(err, fault.Invalid):
			return asked + "NOT THE AUTHOR'S: " + err.Error()
		case err != nil:
			return asked + "invalid: " + err.Error()
		case !d.Needs.Any():
			verdict := map[bool]string{true: "yes", false: "no"}[d.Selected]
			if d.Incomplete {
				verdict += " (incomplete)"
			}
			return asked + verdict + ": " + d.Reason
		}
		if d.Needs.Changed {
			asked, event.Changed = asked+"[files] ", &s.Changed
		}
		if d.Needs.Body {
			asked, event.Body = asked+"[body] ", payload
		}
	}
	return asked + "still undecided"
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
