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
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/cel"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resolve"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
)

var update = flag.Bool("update", false, "write the golden files, docs/guarantees.md and docs/reasons.md")

// known is an occasion with what was learnt.
type known struct {
	*Occasion
	event   match.Event
	scope   *template.Scope
	payload map[string]any
	// asked says what was learnt: "[body] ".
	asked string
}

func (o *Occasion) read(t *testing.T) *known {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../pkg/provider/github/testdata", o.Payload))
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"X-Github-Event": {o.Event}, "X-Github-Delivery": {"1"}, "Content-Type": {"application/json"}}
	spec, err := github.New(github.Options{}).Webhook.Decode(header, data)
	if err != nil {
		t.Fatal(err)
	}
	spec.Repository.Namespace = "team"
	k := &known{Occasion: o}
	if err := json.Unmarshal(data, &k.payload); err != nil {
		t.Fatal(err)
	}
	title := ""
	if spec.Commit != nil {
		title = spec.Commit.Title
	}
	k.scope, err = template.New(template.Facts{
		Key: "event", Variables: resolve.Variables(spec, git.Head{SHA: spec.SHA}, "team"), Headers: spec.Headers,
		Params: o.Params,
	})
	if err != nil {
		t.Fatal(err)
	}
	k.event = match.Of(spec, title)
	k.event.Params = k.scope.Params()
	return k
}

// learn looks up what is asked for, as the controller does.
func (k *known) learn(needs template.Needs) {
	if needs.Changed {
		c := k.Changed
		k.asked, k.event.Changed = k.asked+"[files] ", &c
		k.scope.Learn(template.Facts{Files: cel.ChangedFiles(c.Added, c.Deleted, c.Modified, c.Renamed)})
	}
	if needs.Body {
		k.asked, k.event.Body = k.asked+"[body] ", k.payload
		k.scope.Learn(template.Facts{Body: k.payload})
	}
	if needs.Pulls {
		k.asked += "[pulls] "
		k.scope.Learn(template.Facts{MergedPull: &k.Merged})
	}
	for _, ref := range needs.Secrets {
		k.asked += "[" + ref.Name + "/" + ref.Key + "] "
		k.scope.Learn(template.Facts{Secrets: map[template.SecretRef]string{ref: k.Secrets[ref.Name+"/"+ref.Key]}})
	}
}

// maxRounds is how often something more is learnt: of each kind once, and one secret after the
// other.
const maxRounds = 6

// The golden file of a selection holds, for each pipeline, what was looked up for it, whether it is
// selected, and why.
func TestSelection(t *testing.T) {
	corpus(t, "selection", func(t *testing.T, data []byte) string {
		var s Selection
		if err := yaml.UnmarshalStrict(data, &s); err != nil {
			t.Fatal(err)
		}
		return s.decide(t)
	})
}

// corpus compares what each file of a directory of testdata gives with the golden file beside it.
func corpus(t *testing.T, directory string, give func(t *testing.T, data []byte) string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", directory, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, strings.TrimSuffix(file, ".yaml")+".golden", give(t, data))
		})
	}
}

func (s *Selection) decide(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, p := range s.Pipelines {
		annotations := "apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata:\n  name: build\n  annotations:\n"
		for name, value := range p.Annotations {
			annotations += fmt.Sprintf("    %s/%s: %s\n", pipelinesascode.GroupName, name, quoted(t, value))
		}
		set := resolve.Load([]git.File{{Path: "x.yaml", Data: []byte(annotations)}})
		fmt.Fprintf(&b, "%s\n    %s\n", p.Name, answer(s.read(t), set))
	}
	return b.String()
}

// quoted is a text as JSON, which YAML reads as well.
func quoted(t *testing.T, text string) string {
	t.Helper()
	data, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func answer(k *known, set *resolve.Set) string {
	for range maxRounds {
		definition := set.Definitions()[0]
		annotations, err := set.Annotations(definition, k.scope)
		var d match.Selection
		if err == nil {
			d, err = match.Select(k.event, match.Pipeline{Name: definition.Name, Annotations: annotations})
		}
		needs, unknown := template.NeedsOf(err)
		needs.Add(d.Needs)
		switch {
		case needs.Any():
			k.learn(needs)
		case unknown || err != nil && !fault.Is(err, fault.Invalid):
			return k.asked + "NOT THE AUTHOR'S: " + err.Error()
		case err != nil:
			return k.asked + "invalid: " + err.Error()
		default:
			verdict := map[bool]string{true: "yes", false: "no"}[d.Selected]
			if d.Incomplete {
				verdict += " (incomplete)"
			}
			return k.asked + verdict + ": " + d.Reason
		}
	}
	return k.asked + "still undecided"
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
