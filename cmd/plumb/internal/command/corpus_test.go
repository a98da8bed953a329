// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/delivery"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/scratch"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/worktree"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/test/language"
)

const corpus = "../../../../test/language/testdata"

// occasions returns the cases of the corpus with the files that their pipelines make.
func occasions(t *testing.T) map[string]occasion {
	t.Helper()
	all := map[string]occasion{}
	for _, file := range globbed(t, "selection") {
		var s language.Selection
		must(t, yaml.UnmarshalStrict(read(t, file), &s))
		o := occasion{Occasion: s.Occasion, files: map[string]string{}}
		for i, p := range s.Pipelines {
			var annotations []string
			for name, value := range p.Annotations {
				annotations = append(annotations, name+": "+quoted(t, value))
			}
			if len(annotations) == 0 {
				annotations = []string{"note: none"}
			}
			o.files[fmt.Sprintf(".tekton/p%03d.yaml", i)] = run(fmt.Sprintf("p%03d", i), annotations...)
		}
		all["selection/"+filepath.Base(file)] = o
	}
	for _, file := range globbed(t, "templates") {
		var c language.Templates
		must(t, yaml.UnmarshalStrict(read(t, file), &c))
		o := occasion{Occasion: c.Occasion, files: map[string]string{}}
		for i, text := range append(language.Everywhere(), c.Texts...) {
			p := run(fmt.Sprintf("t%03d", i), `on-cel-expression: "true || event_type == event_type"`)
			o.files[fmt.Sprintf(".tekton/t%03d.yaml", i)] = strings.Replace(p, "spec: {",
				"spec: {params: [{name: x, value: "+quoted(t, text)+"}], ", 1)
		}
		all["templates/"+filepath.Base(file)] = o
	}
	for _, sample := range []language.Occasion{
		{Event: "Push Hook", Payload: "push-branch.json"}, {Event: "Tag Push Hook", Payload: "tag-lightweight.json"},
		{Event: "Merge Request Hook", Payload: "mr-open-fork.json"},
		{Event: "Merge Request Hook", Payload: "mr-labels.json"}, {Event: "Note Hook", Payload: "note-merge-request.json"},
	} {
		all["gitlab/"+sample.Payload] = ofGitLab(t, sample)
	}
	return all
}

// occasion is a case with its files.
type occasion struct {
	language.Occasion
	files  map[string]string
	gitlab bool
}

// ofGitLab has the placeholders of all cases meet a delivery of GitLab: the corpus has GitHub's.
func ofGitLab(t *testing.T, sample language.Occasion) occasion {
	t.Helper()
	sample.Changed = match.Changes{Modified: []string{"src/a.go"}}
	o := occasion{Occasion: sample, gitlab: true, files: map[string]string{
		".tekton/a.yaml": run("on-event", `on-event: "[push, pull_request]"`, `on-target-branch: "[main, refs/tags/*]"`,
			`on-label: "[kind/bug]"`, `on-path-change: "src/**"`),
		".tekton/b.yaml": run("on-comment", "on-comment: ."),
	}}
	for i, text := range language.Everywhere() {
		p := run(fmt.Sprintf("t%03d", i), `on-cel-expression: "true || event_type == event_type"`, "on-comment: .")
		o.files[fmt.Sprintf(".tekton/t%03d.yaml", i)] = strings.Replace(p, "spec: {",
			"spec: {params: [{name: x, value: "+quoted(t, text)+"}], ", 1)
	}
	return o
}

func globbed(t *testing.T, directory string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpus, directory, "*.yaml"))
	must(t, err)
	if len(files) == 0 {
		t.Fatal("the corpus is not where it was")
	}
	return files
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file) // #nosec G304 -- a test's own
	must(t, err)
	return data
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	data, err := json.Marshal(text)
	must(t, err)
	return string(data)
}

// Every case of the corpus is processed by the controller's reconciler and by plumb plan, from the
// same delivery and the same files: what is created has the same bytes, and every decision the same
// sentence.
func TestCorpus(t *testing.T) {
	for name, o := range occasions(t) {
		for _, variant := range []struct {
			name string
			// plumb knows the values of secrets, by --param; else both have a text in place of
			// them.
			known bool
		}{{"", false}, {" with secrets", true}} {
			if variant.known && len(o.Secrets) == 0 {
				continue
			}
			t.Run(name+variant.name, func(t *testing.T) { o.compare(t, variant.known) })
		}
	}
}

func (o occasion) compare(t *testing.T, known bool) {
	repo := scratch.New(t, o.files)
	repo.Git("checkout", "--quiet", "-b", "topic")
	head := repo.Git("rev-parse", "HEAD")
	sent := o.delivery(t, head)
	headers, err := json.Marshal(sent.Header)
	must(t, err)
	repository := o.repository()
	written, err := yaml.Marshal(repository)
	must(t, err)
	args := append([]string{"plan", "--payload=payload", "--headers=headers", "--repository=repository"}, o.facts()...)
	if known {
		args = append(args, o.params()...)
	}
	repo.Write(map[string]string{"payload": string(sent.Body), "headers": string(headers), "repository": string(written)})
	want := control(t, sent, repository, o.values(known), o.service(t, repo))
	got := plumb(t.Context(), repo.Dir, "", append(args, "-o=yaml")...)
	if got.code == exitTool || want.plan == nil {
		t.Fatalf("exit %d: %s; the controller's plan: %+v", got.code, got.said, want.plan)
	}
	if diff := cmp.Diff(want.created, got.out); diff != "" {
		t.Errorf("PipelineRuns (-controller +plumb):\n%s", diff)
	}
	if want.created == "" {
		t.Error("the case creates nothing, and compares nothing")
	}
	if !known {
		o.compareDecisions(t, want.plan, plumb(t.Context(), repo.Dir, "", append(args, "-o=json")...))
	}
}

// delivery is the case's, about a commit that the clone has.
func (o occasion) delivery(t *testing.T, head string) delivery.Delivery {
	t.Helper()
	service := "github"
	header := http.Header{"Content-Type": {"application/json"}}
	if o.gitlab {
		service = "gitlab"
		header.Set("X-Gitlab-Event", o.Event)
		header.Set("Idempotency-Key", "72d3162e")
	} else {
		header.Set("X-GitHub-Event", o.Event)
		header.Set("X-GitHub-Delivery", "72d3162e")
		header.Set("X-GitHub-Hook-Installation-Target-Type", "integration")
	}
	body := read(t, filepath.Join("../../../../pkg/provider", service, "testdata", o.Payload))
	return delivery.Delivery{Header: header, Body: []byte(strings.ReplaceAll(string(body), headOfSamples, head))}
}

// compareDecisions leaves out what depends on a secret: plumb does not know it, and says so.
func (o occasion) compareDecisions(t *testing.T, want *v1alpha1.Plan, got answer) {
	t.Helper()
	var read struct {
		Disposition, Message string
		Pipelines            []struct{ Pipeline, Starts, Why string }
	}
	must(t, json.Unmarshal([]byte(got.out), &read))
	if len(read.Pipelines) != len(want.Decisions) || len(read.Pipelines) != len(o.files) {
		t.Fatalf("%d pipelines, want %d", len(read.Pipelines), len(want.Decisions))
	}
	for i, decision := range want.Decisions {
		row := read.Pipelines[i]
		if row.Starts == "unknown" && strings.Contains(row.Why, "it depends on secret team/vault") && len(o.Secrets) > 0 {
			continue
		}
		if row.Why != decision.Reason || row.Pipeline != decision.Pipeline {
			t.Errorf("plumb says %s: %s\nthe controller %s: %s", row.Pipeline, row.Why, decision.Pipeline, decision.Reason)
		}
	}
}

// repository is the one whose params the case has.
func (o occasion) repository() *pacv1alpha1.Repository {
	r := &pacv1alpha1.Repository{
		TypeMeta:   metav1.TypeMeta{APIVersion: pacv1alpha1.SchemeGroupVersion.String(), Kind: "Repository"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "uid"},
		Spec:       pacv1alpha1.RepositorySpec{URL: "https://github.com/acme/app"},
	}
	if o.gitlab {
		r.Spec.URL = "https://gitlab.example.com/acme/team/app"
		r.Spec.GitProvider = &pacv1alpha1.GitProvider{Type: "gitlab", Secret: &pacv1alpha1.Secret{Name: "gitlab"}}
	}
	var params []pacv1alpha1.Params
	for _, p := range o.Params {
		param := pacv1alpha1.Params{Name: p.Name, Value: p.Value, Filter: p.Filter}
		if p.Secret != nil {
			param.SecretRef = &pacv1alpha1.Secret{Name: p.Secret.Name, Key: p.Secret.Key}
		}
		params = append(params, param)
	}
	r.Spec.Params = &params
	return r
}

// values are the Secrets: those of the case if plumb knows them too, else what it shows in their
// place.
func (o occasion) values(known bool) map[string]map[string][]byte {
	all := map[string]map[string][]byte{"gitlab": {"provider.token": []byte("x")}}
	for name, value := range o.Secrets {
		secret, key, _ := strings.Cut(name, "/")
		if all[secret] == nil {
			all[secret] = map[string][]byte{}
		}
		if !known {
			value = "<secret " + name + ">"
		}
		all[secret][key] = []byte(value)
	}
	return all
}

// params give plumb the secrets.
func (o occasion) params() []string {
	var args []string
	for _, p := range o.Params {
		if p.Secret != nil && p.Filter == "" {
			args = append(args, "--param="+p.Name+"="+o.Secrets[p.Secret.Name+"/"+p.Secret.Key])
		}
	}
	return args
}

// facts are the flags for what the delivery does not say.
func (o occasion) facts() []string {
	var args []string
	for how, files := range map[string][]string{"added": o.Changed.Added, "deleted": o.Changed.Deleted,
		"modified": o.Changed.Modified, "renamed": o.Changed.Renamed} {
		for _, file := range files {
			args = append(args, "--changed="+how+"="+file)
		}
	}
	if o.Merged > 0 {
		args = append(args, fmt.Sprint("--number=", o.Merged))
	}
	return args
}

// service answers the controller. Its lists of files are whole, as a working tree's are.
func (o occasion) service(t *testing.T, repo *scratch.Repo) *service {
	t.Helper()
	tree, err := worktree.Open(t.Context(), repo.Dir)
	must(t, err)
	files, err := tree.Files(t.Context(), worktree.OnDisk, ".tekton")
	must(t, err)
	c := o.Changed
	s := &service{
		files: files, changed: git.Changes{Added: c.Added, Modified: c.Modified, Deleted: c.Deleted, Renamed: c.Renamed},
		head: v1alpha1.Commit{Title: tree.Head.Message, URL: "https://github.com/acme/app/commit/" + tree.Head.SHA},
		pull: func(e *v1alpha1.GitEventSpec) {
			e.SHA = tree.Head.SHA
			if !o.gitlab { // whose delivery says the rest
				e.BaseRef, e.HeadRef, e.HeadURL, e.PullRequest.HeadProjectID = "main", "topic", e.Project.URL, e.Project.ID
			}
		},
	}
	if o.gitlab {
		s.head.URL = "https://gitlab.example.com/acme/team/app/-/commit/" + tree.Head.SHA
	}
	if o.Merged > 0 {
		s.pulls = []git.Pull{{Number: o.Merged, Merged: true, BaseRef: "main"}}
	}
	return s
}
