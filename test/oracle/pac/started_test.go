// SPDX-License-Identifier: Apache-2.0

package pac

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/openshift-pipelines/pipelines-as-code/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/openshift-pipelines/pipelines-as-code/pkg/consoleui"
	"github.com/openshift-pipelines/pipelines-as-code/pkg/params"
	"github.com/openshift-pipelines/pipelines-as-code/pkg/params/clients"
	"github.com/openshift-pipelines/pipelines-as-code/pkg/params/info"
	"github.com/openshift-pipelines/pipelines-as-code/pkg/params/settings"
	"github.com/openshift-pipelines/pipelines-as-code/pkg/params/triggertype"
	"github.com/openshift-pipelines/pipelines-as-code/pkg/pipelineascode"
	"github.com/openshift-pipelines/pipelines-as-code/pkg/provider"
	testclient "github.com/openshift-pipelines/pipelines-as-code/pkg/test/clients"
	kitesthelper "github.com/openshift-pipelines/pipelines-as-code/pkg/test/kubernetestint"
	testprovider "github.com/openshift-pipelines/pipelines-as-code/pkg/test/provider"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"knative.dev/pkg/apis"
	rtesting "knative.dev/pkg/reconciler/testing"
)

// tree is a public .tekton directory: the files below it.
type tree struct {
	name  string
	files map[string]string
}

// always starts for every event. Without it, an event for which Pipelines-as-Code starts nothing
// has no PipelineRun, and is not compared.
const always = `apiVersion: tekton.dev/v1
kind: PipelineRun
metadata: {name: always, annotations: {pipelinesascode.tekton.dev/on-cel-expression: "true"}}
spec: {pipelineSpec: {tasks: [{name: t, taskSpec: {steps: [{name: s, image: busybox, script: exit 0}]}}]}}
`

// trees returns public .tekton directories: that of Pipelines-as-Code, those of its tests, and
// Tekton's. Each has the pipeline always in addition.
func trees(t *testing.T) []tree {
	t.Helper()
	release := moduleDir(t, "github.com/openshift-pipelines/pipelines-as-code")
	all := []tree{
		directory(t, "pipelines-as-code", filepath.Join(release, ".tekton")),
		directory(t, "pipeline", filepath.Join(moduleDir(t, "github.com/tektoncd/pipeline"), ".tekton")),
	}
	found, err := filepath.Glob(filepath.Join(release, "pkg/pipelineascode/testdata/*/.tekton"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range found {
		all = append(all, directory(t, filepath.Base(filepath.Dir(dir)), dir))
	}
	// Each file of the end-to-end tests is a directory of its own, for each event that the tests
	// put into it.
	files, err := filepath.Glob(filepath.Join(release, "test/testdata/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{"pull_request", "push", "pull_request, push"} {
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".yaml")
			text := filled(read(t, file), name, event)
			all = append(all, tree{name + "-" + strings.ReplaceAll(event, ", ", "-"), map[string]string{name + ".yaml": text}})
		}
	}
	if more := os.Getenv("TREES"); more != "" { // a directory with more, each <name>/.tekton
		found, err := filepath.Glob(filepath.Join(more, "*", ".tekton"))
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range found {
			all = append(all, directory(t, filepath.Base(filepath.Dir(dir)), dir))
		}
	}
	for _, one := range all {
		one.files["zz-always.yaml"] = always
	}
	return all
}

var placeholder = regexp.MustCompile(`\\\\ \.(\w+) //`)

// filled replaces the placeholders of a file of the end-to-end tests.
func filled(text, name, event string) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		switch placeholder.FindStringSubmatch(found)[1] {
		case "TargetNamespace":
			return namespace
		case "TargetBranch":
			return "main"
		case "TargetEvent":
			return event
		case "PipelineName":
			return name
		}
		return "x"
	})
}

func directory(t *testing.T, name, dir string) tree {
	t.Helper()
	all := tree{name, map[string]string{}}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		at, err := filepath.Rel(dir, path)
		if err == nil {
			all.files[filepath.ToSlash(at)] = read(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const namespace = "ci"

// occurrence is an event of a repository.
type occurrence struct {
	url, sha, branch, from string
	number                 int
	changed                []string
}

// git is a Git service that lets every user start every pipeline, and has the files of one commit.
type git struct {
	*testprovider.TestProviderImp
	files string
}

func (g *git) GetConfig() *info.ProviderConfig { return &info.ProviderConfig{Name: "github"} }

// GetTektonDir returns the files in one text, as the provider for GitHub does.
func (g *git) GetTektonDir(context.Context, *info.Event, string, string) (string, error) {
	return g.files, nil
}

// start lets Pipelines-as-Code process an event, and returns the PipelineRuns that it creates.
func start(t *testing.T, all tree, o occurrence) []pipelinev1.PipelineRun {
	t.Helper()
	ctx, _ := rtesting.SetupFakeContext(t)
	logger := zap.NewNop().Sugar()
	repository := &v1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: filepath.Base(o.url)},
		Spec:       v1alpha1.RepositorySpec{URL: o.url},
	}
	data, _ := testclient.SeedTestData(t, ctx, testclient.Data{Repositories: []*v1alpha1.Repository{repository}})
	data.Pipeline.PrependReactor("create", "pipelineruns", admit(ctx, data.Pipeline.Tracker()))
	var hubs sync.Map
	opts := &info.PacOpts{Settings: settings.Settings{HubCatalogs: &hubs, ApplicationName: "CI"}}
	run := &params.Run{
		Clients: clients.Clients{PipelineAsCode: data.PipelineAsCode, Log: logger, Kube: data.Kube, Tekton: data.Pipeline},
		Info: info.Info{
			Pac: opts,
			Controller: &info.ControllerInfo{
				Name:      "default",
				Configmap: "pipelines-as-code",
				Secret:    "pipelines-as-code-secret",
			},
			Kube: &info.KubeOpts{Namespace: "pipelines-as-code"},
		},
	}
	run.Clients.SetConsoleUI(consoleui.FallBackConsole{})
	event := info.NewEvent()
	event.Provider.Token, event.InstallationID, event.Sender = "x", 99, "dev"
	event.URL, event.BaseURL, event.HeadURL = o.url, o.url, o.url
	event.Organization, event.Repository = "acme", filepath.Base(o.url)
	event.SHA, event.SHATitle, event.SHAURL = o.sha, "A title", o.url+"/commit/"+o.sha
	event.BaseBranch, event.HeadBranch, event.DefaultBranch = o.branch, o.from, "main"
	event.PullRequestNumber = o.number
	event.EventType, event.TriggerTarget = "push", triggertype.Push
	if o.number > 0 {
		event.EventType, event.TriggerTarget, event.PullRequestTitle = "pull_request", triggertype.PullRequest, "A title"
	}
	text, err := joined(all)
	if err != nil {
		return nil // GetTektonDir fails, and nothing is started
	}
	service := &git{
		&testprovider.TestProviderImp{AllowIT: true, WantAllChangedFiles: o.changed, WantModifiedFiles: o.changed},
		text,
	}
	ctx = info.StoreNS(info.StoreCurrentControllerName(ctx, "default"), "pipelines-as-code")
	pac := pipelineascode.NewPacs(event, service, run, opts, &kitesthelper.KinterfaceTest{}, logger, nil)
	if err := pac.Run(ctx); err != nil {
		t.Logf("%s: Pipelines-as-Code: %v", all.name, err)
	}
	list, err := data.Pipeline.TektonV1().PipelineRuns(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// admit names PipelineRuns and refuses those that Tekton refuses, as a cluster does.
func admit(ctx context.Context, stored clienttesting.ObjectTracker) clienttesting.ReactionFunc {
	var created atomic.Int32
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		create, _ := action.(clienttesting.CreateAction)
		run, is := create.GetObject().(*pipelinev1.PipelineRun)
		if !is {
			return true, nil, errors.New("this is no PipelineRun")
		}
		if n := created.Add(1); run.Name == "" {
			run.Name = fmt.Sprint(run.GenerateName, n)
		}
		checked, within := run.DeepCopy(), apis.WithinCreate(ctx)
		checked.SetDefaults(within)
		if refused := checked.Validate(within).Filter(apis.ErrorLevel); refused != nil {
			return true, nil, refused
		}
		return true, run, stored.Create(action.GetResource(), run, action.GetNamespace())
	}
}

// joined returns the files as the provider for GitHub joins them.
func joined(all tree) (string, error) {
	var text strings.Builder
	for _, name := range sortedKeys(all.files) {
		if !strings.HasSuffix(name, ".yaml") && !strings.HasSuffix(name, ".yml") {
			continue
		}
		content := all.files[name]
		if err := provider.ValidateYaml([]byte(content), name); err != nil {
			return "", err
		}
		if text.Len() > 0 && !strings.HasPrefix(content, "---") {
			text.WriteString("---")
		}
		text.WriteString("\n" + content + "\n")
	}
	return text.String(), nil
}
