// SPDX-License-Identifier: Apache-2.0

package planning_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/delivery"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/planning"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/scratch"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/settings"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/worktree"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// filtered are pipelines that start for a changed file by its name, or by how it changed.
func filtered() string {
	var all strings.Builder
	pipeline := func(name, annotation string) {
		fmt.Fprintf(&all, "apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata:\n  name: %s\n  annotations:\n    %s\nspec: {pipelineSpec: {tasks: [{name: t, taskSpec: {steps: [{name: s, image: busybox}]}}]}}\n---\n", name, annotation)
	}
	const prefix = "pipelinesascode.tekton.dev/"
	for _, file := range []string{"a", "b", "new", "other", "dir", "moved", "more", "lonely", "f"} {
		pipeline("for-"+file, prefix+`on-event: push
    `+prefix+`on-target-branch: main
    `+prefix+`on-path-change: "{`+file+`,`+file+`/**}"`)
	}
	for _, list := range []string{"added", "modified", "deleted", "renamed"} {
		pipeline("if-"+list, prefix+`on-cel-expression: event == "push" && files.`+list+`.size() > 0`)
	}
	return strings.TrimSuffix(all.String(), "---\n")
}

// commit is a commit of a history: its parent, which the first commit lacks, and the files that it
// changes.
type commit struct {
	name, parent string
	files        map[string]string
}

func history() []commit {
	many := map[string]string{}
	for i := range 310 {
		many[fmt.Sprintf("f/%d", i)] = fmt.Sprint("x", i)
	}
	release := map[string]string{
		"a": "released", "new": "4", "b": forge.Deleted, "dir/c": forge.Deleted, "moved/c": "a file that is moved",
	}
	return []commit{
		{"first", "", map[string]string{".tekton/all.yaml": filtered(), "a": "1", "b": "2", "dir/c": "a file that is moved"}},
		{"release", "first", release},
		{"amended", "first", map[string]string{"a": "amended", "other": "5"}},
		{"same", "first", release},
		{"again", "first", map[string]string{"b": forge.Deleted, "new": "else"}},
		{"on", "release", map[string]string{"more": "6"}},
		{"apart", "", map[string]string{".tekton/all.yaml": filtered(), "a": "1", "lonely": "7"}},
		{"large", "release", many},
		{"parted", "first", map[string]string{"a": "parted"}},
	}
}

// plumb's plan agrees with the controller. For the same repository and the same push, both start
// the same pipelines.
func TestAPushStartsHereWhatTheControllerStarts(t *testing.T) {
	c := newControllersService(t)
	repo := scratch.New(t, map[string]string{"README.md": "before all"})
	here, there := map[string]string{}, map[string]string{}
	for _, made := range history() {
		here[made.name], there[made.name] = committed(repo, made, here[made.parent]), c.commit(made, there[made.parent])
	}
	for push, want := range map[string]string{
		"first release":   "for-a for-b for-moved for-new if-added if-deleted if-modified if-renamed",
		"release first":   "for-a for-b for-dir for-moved for-new if-added if-deleted if-modified",
		"on first":        "for-a for-b for-dir for-more for-moved for-new if-added if-deleted if-modified",
		"release amended": "for-a for-b for-dir for-moved for-new for-other if-added if-deleted if-modified",
		"release same":    "",
		"release again":   "for-a for-dir for-moved for-new if-added if-deleted if-modified",
		"release apart":   "for-a for-lonely for-moved for-new if-added if-deleted if-modified",
		"release large":   "for-f if-added",
		"large parted":    "for-a for-b for-dir for-f for-moved for-new if-added if-deleted if-modified",
	} {
		t.Run(push, func(t *testing.T) {
			before, after, _ := strings.Cut(push, " ")
			sent := c.PushDelivery(forge.PushEvent{
				Repo: "acme/app", Ref: "refs/heads/main", Before: there[before], After: there[after],
			})
			controller := c.plan(t, delivery.Delivery{Header: sent.Header, Body: sent.Body, Recorded: true})
			body := strings.NewReplacer(there[before], here[before], there[after], here[after]).Replace(string(sent.Body))
			repo.Git("checkout", "--quiet", here[after])
			planner := c.planHere(t, repo, delivery.Delivery{Header: sent.Header, Body: []byte(body), Recorded: true})
			if diff := cmp.Diff(controller, planner); diff != "" {
				t.Error("the controller and the planner:", diff)
			}
			if got := strings.Join(started(planner), " "); got != want {
				t.Errorf("started:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// started are the names of the pipelines that start, sorted.
func started(decisions map[string]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(decisions)),
		func(name string) bool { return !strings.HasPrefix(decisions[name], "yes") })
}

// decided is what a plan says of each pipeline.
func decided(p *plan.Plan) map[string]string {
	all, starts := map[string]string{}, map[string]bool{}
	for _, run := range p.Runs {
		starts[run.Pipeline] = true
	}
	for _, d := range p.Decisions {
		all[d.Pipeline] = map[bool]string{true: "yes: ", false: "no: "}[starts[d.Pipeline]] + d.Reason
	}
	return all
}

// committed makes a commit in a working tree.
func committed(repo *scratch.Repo, made commit, parent string) string {
	switch made.parent {
	case "":
		repo.Git("checkout", "--quiet", "--orphan", "branch-of-"+made.name)
		repo.Git("rm", "--quiet", "-rf", ".")
	default:
		repo.Git("checkout", "--quiet", parent)
	}
	for name, text := range made.files {
		if text == forge.Deleted {
			repo.Remove(name)
			continue
		}
		repo.Write(map[string]string{name: text})
	}
	return repo.Commit(made.name)
}

// controllersService is a GitHub, as a controller sees it.
type controllersService struct {
	*forge.GitHub
	repo       forge.Repo
	key        string
	app        int64
	repository string
}

func newControllersService(t *testing.T) *controllersService {
	t.Helper()
	g := forge.New(forge.Options{})
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	app := g.CreateApp(7, "plumbline", "", "secret")
	c := &controllersService{
		GitHub: g, repo: g.CreateRepo("acme", "app", forge.RepoOptions{}), key: app.PrivateKeyPEM, app: app.ID,
	}
	g.Install(app.ID, "acme")
	c.repository = "apiVersion: pipelinesascode.tekton.dev/v1alpha1\nkind: Repository\nmetadata: {name: app, namespace: team}\nspec: {url: " + c.repo.HTMLURL + "}\n"
	return c
}

func (c *controllersService) commit(made commit, parent string) string {
	return c.Commit("acme/app", "main",
		forge.Change{Message: made.name, Files: made.files, Parent: parent, Orphan: made.parent == ""})
}

// read decodes a delivery for the one Repository.
func (c *controllersService) read(t *testing.T, sent delivery.Delivery) (*v1alpha1.GitEventSpec, *settings.Settings) {
	t.Helper()
	event, err := sent.Read()
	if err != nil || event.Spec == nil {
		t.Fatal(event.Ignored, err)
	}
	event.Spec.Repository = v1alpha1.RepositoryReference{Namespace: "team", Name: "app", URL: c.repo.HTMLURL}
	files, err := settings.FromFiles([]byte(c.repository), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	return event.Spec, files
}

// plan decides with what GitHub's API says.
func (c *controllersService) plan(t *testing.T, sent delivery.Delivery) map[string]string {
	t.Helper()
	spec, files := c.read(t, sent)
	credentials := provider.Credentials{AppID: c.app, PrivateKey: []byte(c.key), InstallationID: spec.InstallationID}
	client, err := github.New(github.Options{}).Connect(t.Context(), c.URL(), spec.Project, credentials)
	if err != nil {
		t.Fatal(err)
	}
	in := plan.Input{Event: plan.Event{Namespace: "plumbline", Name: spec.EventName(), Spec: spec},
		Repository: files.Repository, Config: files.Config}
	made, err := plan.Make(t.Context(), in, plan.Sources{Source: client, History: client})
	if err != nil || made.Wait != nil {
		t.Fatal(err, made.Wait)
	}
	return decided(made)
}

// planHere decides with what a working tree says.
func (c *controllersService) planHere(t *testing.T, repo *scratch.Repo, sent delivery.Delivery) map[string]string {
	t.Helper()
	spec, files := c.read(t, sent)
	tree, err := worktree.Open(t.Context(), repo.Dir)
	if err != nil {
		t.Fatal(err)
	}
	result, err := planning.Make(t.Context(), planning.Request{
		Tree: tree, Delivery: sent, Spec: spec, Settings: files, At: spec.SHA, Namespace: "plumbline", Version: "v1",
	})
	if err != nil {
		t.Fatal(err)
	}
	return decided(result.Plan)
}
