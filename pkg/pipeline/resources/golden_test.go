// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resolve"
)

var update = flag.Bool("update", false, "write the golden files")

const sha = "0123456789abcdef0123456789abcdef01234567"

func pushEvent() *v1alpha1.GitEvent {
	return &v1alpha1.GitEvent{
		ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline", Name: "push-0123456789abcdef0123456789abcdef"},
		Spec: v1alpha1.GitEventSpec{
			Provider: "github", Host: "github.com", Trigger: v1alpha1.TriggerPush, EventType: "push",
			Repository:     v1alpha1.RepositoryReference{Namespace: "ci", Name: "app-repo"},
			Project:        v1alpha1.Project{Owner: "Acme", Name: "App", URL: "https://github.com/Acme/App"},
			InstallationID: 17, SHA: sha, BaseRef: "refs/heads/main", HeadRef: "refs/heads/main",
			HeadURL: "https://github.com/Acme/App", Sender: "Jane",
		},
	}
}

func pullRequestEvent() *v1alpha1.GitEvent {
	ev := pushEvent()
	ev.Name = "pull-request-0123456789abcdef0123456789abcdef"
	ev.Spec.Host = "ghe.example.com:8443"
	ev.Spec.Trigger, ev.Spec.EventType = v1alpha1.TriggerPullRequest, "pull_request"
	ev.Spec.Project.URL = "https://ghe.example.com:8443/Acme/App"
	ev.Spec.Project.CloneURL = "https://ghe.example.com:8443/Acme/App.git"
	ev.Spec.BaseRef, ev.Spec.HeadRef, ev.Spec.HeadURL = "main", "fix/1", "https://ghe.example.com:8443/joe/App"
	ev.Spec.Sender = "joe[bot]"
	ev.Spec.PullRequest = &v1alpha1.PullRequest{Number: 7, Title: "Fix"}
	return ev
}

func renderedRun() *pipelinev1.PipelineRun {
	return &pipelinev1.PipelineRun{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "build-", Namespace: "kube-system", Finalizers: []string{"theirs"}, UID: "theirs",
			ResourceVersion: "1",
			OwnerReferences: []metav1.OwnerReference{{Kind: "Namespace", Name: "default"}},
			Labels: map[string]string{
				"team": "a", pipelinesascode.State: "completed", pipelinesascode.CheckRunID: "1", plumbline.EventLabel: "theirs",
				plumbline.GroupName + "/anything": "theirs", pipelinesascode.ManagedByLabel: "theirs",
				pipelinesascode.PullRequest: "99",
			},
			Annotations: map[string]string{
				"note": "kept", pipelinesascode.OnEvent: "[push]", pipelinesascode.OnTargetBranch: "[main]",
				pipelinesascode.MaxKeepRuns: "5", pipelinesascode.CancelInProgress: "true",
				pipelinesascode.LogURL: "https://evil.example.com", pipelinesascode.GitAuthSecret: "theirs",
				pipelinesascode.CheckRunID: "1", plumbline.RunKeyAnnotation: "theirs",
				pipelinesascode.GHEURL: "https://evil.example.com",
			},
		},
		Spec: pipelinev1.PipelineRunSpec{ManagedBy: new("example.com/runner"),
			PipelineSpec: &pipelinev1.PipelineSpec{Tasks: []pipelinev1.PipelineTask{{Name: "x"}}}},
		Status: pipelinev1.PipelineRunStatus{
			PipelineRunStatusFields: pipelinev1.PipelineRunStatusFields{SpanContext: map[string]string{"a": "b"}},
		},
	}
}

func pushInput() RunInput {
	return RunInput{
		Event: pushEvent(),
		Head: git.Head{
			SHA: sha, Commit: v1alpha1.Commit{Title: "Fix: \"it\"", URL: "https://github.com/Acme/App/commit/" + sha},
		},
		Rendered:     renderedRun(),
		TargetBranch: "refs/heads/main", SourceBranch: "refs/heads/main",
		Definition: resolve.Definition{File: ".tekton/push.yaml", Document: 2, Name: "build"},
		Name:       "build-abc", Namespace: "ci", Secret: "pac-gitauth-abc", LogURL: "https://console.example.com/x",
		Version: "v0.1.0+dirty",
	}
}

func pullRequestInput() RunInput {
	in := pushInput()
	in.Event, in.Secret, in.LogURL = pullRequestEvent(), "", ""
	in.TargetBranch, in.SourceBranch = "main", "fix/1"
	in.Rendered = &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{Name: "check of app"}}
	return in
}

// mergeRequestInput is of a fork on a GitLab; its author wrote annotations that are ours to write.
func mergeRequestInput() RunInput {
	in := pullRequestInput()
	spec := &in.Event.Spec
	spec.Provider, spec.Host, spec.InstallationID, spec.EventType = "gitlab", "gitlab.example.com", 0, "Merge Request"
	spec.Project = v1alpha1.Project{
		Owner: "acme/team", Name: "app", ID: 3, URL: "https://gitlab.example.com/acme/team/app",
	}
	spec.PullRequest.HeadProjectID = 8
	in.Rendered.Annotations = map[string]string{
		pipelinesascode.GitLabPipelineID: "theirs", pipelinesascode.SourceProjectID: "theirs",
		pipelinesascode.TargetProjectID: "theirs",
	}
	return in
}

func secretInput(ev *v1alpha1.GitEvent, user, token string) SecretInput {
	return SecretInput{
		Event: ev,
		Repository: &pacv1alpha1.Repository{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "app-repo", UID: types.UID("uid-1")},
		},
		Run:  &v1alpha1.Run{Name: "build-abc"},
		Name: "pac-gitauth-abc", Namespace: "ci", Token: token, User: user,
	}
}

func TestGolden(t *testing.T) {
	made := map[string]any{
		"push.yaml":              MakePipelineRun(pushInput()),
		"pull_request.yaml":      MakePipelineRun(pullRequestInput()),
		"merge_request.yaml":     MakePipelineRun(mergeRequestInput()),
		"secret.yaml":            MakeGitAuthSecret(secretInput(pushEvent(), "", "ghs_plain")),
		"secret_enterprise.yaml": MakeGitAuthSecret(secretInput(pullRequestEvent(), "x:y@z", "a/b+c d@e:f%")),
	}
	for name, object := range made {
		t.Run(name, func(t *testing.T) {
			got, err := yaml.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("-want +got (run with -update if it is right):\n%s", diff)
			}
		})
	}
}

func TestMakePipelineRunLeavesItsInputAlone(t *testing.T) {
	in := pushInput()
	run := MakePipelineRun(in)
	run.Spec.PipelineSpec.Tasks[0].Name = "changed"
	run.Labels["team"] = "changed"
	if diff := cmp.Diff(renderedRun(), in.Rendered); diff != "" {
		t.Error(diff)
	}
}

func TestTheSecretHoldsWhatGitAndTasksExpect(t *testing.T) {
	tests := map[string]struct {
		event       *v1alpha1.GitEvent
		user, token string
		config      string
		credentials string
	}{
		"an App's token": {
			pushEvent(), "", "ghs_x", "\n\t[credential \"https://github.com\"]\n\thelper=store\n\t",
			"https://git:ghs_x@github.com/Acme/App",
		},
		"reserved characters are escaped in the URL only": {
			pullRequestEvent(), "x:y@z", "a/b+c d@e:f%", "\n\t[credential \"https://ghe.example.com:8443\"]\n\thelper=store\n\t",
			"https://x%3Ay%40z:a%2Fb+c%20d%40e%3Af%25@ghe.example.com:8443/Acme/App.git",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			secret := MakeGitAuthSecret(secretInput(tt.event, tt.user, tt.token))
			want := map[string]string{
				".gitconfig": tt.config, ".git-credentials": tt.credentials, "git-provider-token": tt.token,
			}
			got := map[string]string{}
			for key, value := range secret.Data {
				got[key] = string(value)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestACredentialIsForTheEventsHostOnly(t *testing.T) {
	tests := map[string]struct{ cloneURL, url, want string }{
		"a clone URL on another host": {
			"https://evil.example.com/Acme/App", "https://github.com/Acme/App", "https://git:t@github.com/Acme/App",
		},
		"a clone URL without a scheme": {
			"git@github.com:Acme/App", "https://github.com/Acme/App", "https://git:t@github.com/Acme/App",
		},
		"a clone URL with a user": {
			"https://u:p@github.com/Acme/App.git?x", "", "https://git:t@github.com/Acme/App.git",
		},
		"no URL that can be used": {
			"ssh://github.com/x", "https://evil.example.com/x", "https://git:t@github.com/Acme/App",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ev := pushEvent()
			ev.Spec.Project.CloneURL, ev.Spec.Project.URL = tt.cloneURL, tt.url
			if got := string(MakeGitAuthSecret(secretInput(ev, "", "t")).Data[".git-credentials"]); got != tt.want {
				t.Errorf("credentials %s, want %s", got, tt.want)
			}
		})
	}
}

func TestAnnotationPatch(t *testing.T) {
	tests := map[string]struct {
		labels, annotations map[string]string
		want                string
	}{
		"both": {map[string]string{"b": "2", "a": "1"}, map[string]string{"c": "\"3\""},
			`{"metadata":{"labels":{"a":"1","b":"2"},"annotations":{"c":"\"3\""}}}`},
		"labels":      {map[string]string{"a": "1"}, nil, `{"metadata":{"labels":{"a":"1"}}}`},
		"annotations": {nil, map[string]string{"a": ""}, `{"metadata":{"annotations":{"a":""}}}`},
		"nothing":     {nil, nil, `{}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := string(AnnotationPatch(tt.labels, tt.annotations)); got != tt.want {
				t.Errorf("patch %s, want %s", got, tt.want)
			}
		})
	}
}

func TestNothingThatIsOursToWriteIsTheAuthors(t *testing.T) {
	data, err := yaml.Marshal(MakePipelineRun(pushInput()))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "evil") || strings.Contains(string(data), "theirs") {
		t.Errorf("a key that only we write has the author's value:\n%s", data)
	}
}
