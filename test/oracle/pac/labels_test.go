// SPDX-License-Identifier: Apache-2.0

package pac

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openshift-pipelines/pipelines-as-code/pkg/apis/pipelinesascode/keys"
	pacv1alpha1 "github.com/openshift-pipelines/pipelines-as-code/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/openshift-pipelines/pipelines-as-code/pkg/kubeinteraction"
	"github.com/openshift-pipelines/pipelines-as-code/pkg/params"
	"github.com/openshift-pipelines/pipelines-as-code/pkg/params/info"
	tektonv1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const goldenSHA = "0123456789abcdef0123456789abcdef01234567"

// goldenRun is a PipelineRun as Plumbline creates it.
func goldenRun(t *testing.T, file string) *tektonv1.PipelineRun {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(golden, file))
	if err != nil {
		t.Fatal(err)
	}
	run := &tektonv1.PipelineRun{}
	if err := yaml.Unmarshal(data, run); err != nil {
		t.Fatal(err)
	}
	return run
}

// pushOf is the event of push.yaml, and pullOf that of pull_request.yaml, as PaC has them.
func pushOf() *info.Event {
	return &info.Event{
		InstallationID: 17, SHA: goldenSHA, SHATitle: `Fix: "it"`, SHAURL: "https://github.com/Acme/App/commit/" + goldenSHA,
		URL: "https://github.com/Acme/App", HeadURL: "https://github.com/Acme/App", Organization: "Acme", Repository: "App",
		Sender: "Jane", EventType: "push", BaseBranch: "refs/heads/main", HeadBranch: "refs/heads/main",
	}
}

func pullOf() *info.Event {
	event := pushOf()
	event.URL, event.HeadURL = "https://ghe.example.com:8443/Acme/App", "https://ghe.example.com:8443/joe/App"
	event.CloneURL, event.GHEURL = "https://ghe.example.com:8443/Acme/App.git", "https://ghe.example.com:8443"
	event.Sender, event.EventType, event.BaseBranch, event.HeadBranch = "joe[bot]", "pull_request", "main", "fix/1"
	event.PullRequestNumber = 7
	return event
}

// mergeOf is the event of merge_request.yaml.
func mergeOf() *info.Event {
	event := pullOf()
	event.InstallationID, event.CloneURL, event.GHEURL = 0, "", ""
	event.URL, event.Organization, event.Repository = "https://gitlab.example.com/acme/team/app", "acme/team", "app"
	event.EventType, event.TargetProjectID, event.SourceProjectID = "Merge Request", 3, 8
	return event
}

// PaC's own function (pkg/kubeinteraction/labels.go, AddLabelsAndAnnotations) writes nothing that
// Plumbline's PipelineRun of the same event does not have, with the same value.
func TestPipelineRunHasLabelsAndAnnotationsOfPaC(t *testing.T) {
	t.Parallel()
	for file, c := range map[string]struct {
		event    *info.Event
		provider string
		// differs has the keys with other values, and why.
		differs map[string]string
	}{
		"push.yaml": {pushOf(), "github", map[string]string{
			keys.SecretCreated: "PaC's watcher creates the Secret later; Plumbline has created it before",
		}},
		"pull_request.yaml": {pullOf(), "github-enterprise", map[string]string{
			keys.GitProvider: "an Enterprise Server is github, too: that is what Konflux's integration-service looks for",
		}},
		"merge_request.yaml": {mergeOf(), "gitlab", nil},
	} {
		ours := goldenRun(t, file)
		theirs := &tektonv1.PipelineRun{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}, Annotations: map[string]string{}},
		}
		if value, found := ours.Annotations[keys.CancelInProgress]; found {
			theirs.Annotations[keys.CancelInProgress] = value
		}
		run := params.New()
		run.Info.Controller = &info.ControllerInfo{
			Name:             "default",
			Configmap:        "pipelines-as-code",
			Secret:           "pipelines-as-code-secret",
			GlobalRepository: "pipelines-as-code",
		}
		repository := &pacv1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "app-repo"}}
		if err := kubeinteraction.AddLabelsAndAnnotations(t.Context(), c.event, theirs, repository,
			&info.ProviderConfig{Name: c.provider}, run); err != nil {
			t.Fatal(err)
		}
		delete(theirs.Labels, "app.kubernetes.io/version")
		compare(t, file+": label ", theirs.Labels, ours.Labels, nil)
		compare(t, file+": annotation ", theirs.Annotations, ours.Annotations, c.differs)
	}
}

func compare(t *testing.T, what string, theirs, ours, differs map[string]string) {
	t.Helper()
	if len(theirs) < 8 {
		t.Fatalf("%s: PaC writes only %v", what, theirs)
	}
	for key, value := range theirs {
		got, found := ours[key]
		_, known := differs[key]
		if !found || got != value && !known {
			t.Errorf("%s%s is %q (there: %t), PaC's is %q", what, key, got, found, value)
		}
	}
	for key := range differs {
		if theirs[key] == ours[key] {
			t.Errorf("%s%s is not different", what, key)
		}
	}
}

// What PaC writes after the create has the keys that Plumbline writes then:
// pkg/pipelineascode/pipelineascode.go (startPR, getExecutionOrderPatch) and
// pkg/provider/github/status.go (metadataPatch). pkg/reconciler/gitevent writes them in the steps
// create and annotate.
func TestKeysOfLaterPatchesAreThoseOfPaC(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../../pkg/apis/pipelinesascode/keys.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		keys.ExecutionOrder, keys.SCMReportingPLRStarted, keys.CheckRunID, keys.LogURL, keys.State, keys.GitLabPipelineID,
	} {
		name, _ := strings.CutPrefix(key, "pipelinesascode.tekton.dev/")
		if !strings.Contains(string(source), `prefix + "`+name+`"`) {
			t.Errorf("pkg/apis/pipelinesascode has no %s", key)
		}
	}
}

// PaC's watcher reads controller-info as JSON (pkg/reconciler/reconciler.go, ReconcileKind).
func TestControllerInfoIsReadByPaC(t *testing.T) {
	t.Parallel()
	var read info.ControllerInfo
	if err := json.Unmarshal([]byte(goldenRun(t, "push.yaml").Annotations[keys.ControllerInfo]), &read); err != nil {
		t.Fatal(err)
	}
	if read.Name != "default" || read.Configmap != "pipelines-as-code" || read.Secret != "pipelines-as-code-secret" {
		t.Errorf("%+v", read)
	}
}
