// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

func TestCloneTokenIsConfiguredToken(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	if got, err := b.client.CloneToken(t.Context(), map[string]string{"contents": "read",
		"metadata": "read"}); err != nil || got != (provider.Token{User: "ci-bot", Value: b.token.Value}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// S29: other tenants use the global Repository's token too. A user who may write to one project
// cannot read another with it, even one that the token covers.
func TestSharedTokenReadsOnlyEventsProject(t *testing.T) {
	f, w := openFake(t, forgelab.Options{})
	other := f.CreateProject("acme/team/other", forgelab.ProjectOptions{Visibility: forgelab.Private})
	f.SetMember(other.FullPath, f.token.User.Username, forgelab.Developer)
	for _, path := range []string{testProject, other.FullPath} {
		f.GitLab.Commit(path, "main", forgelab.Change{Files: map[string]string{"task.yaml": path}})
	}
	for shared, class := range map[bool]fault.Class{false: 0, true: fault.Ignored} {
		w.Credentials.Shared = shared
		client, err := w.Provider.Connect(t.Context(), w.BaseURL, w.Project, w.Credentials)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := client.FileAt(t.Context(), f.project.WebURL+"/-/raw/main/task.yaml"); err != nil ||
			string(got) != testProject {
			t.Errorf("shared %t: its own project: %q, %v", shared, got, err)
		}
		before := f.Count(forgelab.RouteFile)
		got, err := client.FileAt(t.Context(), other.WebURL+"/-/raw/main/task.yaml")
		if shared && (!fault.Is(err, class) || f.Count(forgelab.RouteFile) != before) ||
			!shared && (err != nil || string(got) != other.FullPath) {
			t.Errorf("shared %t: another project: %q, %v", shared, got, err)
		}
	}
}

func TestFileAtOfOtherProjects(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	for path, visibility := range map[string]string{"other/private": forgelab.Private, "other/public": forgelab.Public} {
		project := b.CreateProject(path, forgelab.ProjectOptions{Visibility: visibility})
		b.GitLab.Commit(path, "main", forgelab.Change{Files: map[string]string{"task.yaml": path}})
		got, err := b.client.FileAt(t.Context(), project.WebURL+"/-/raw/main/task.yaml")
		if visibility == forgelab.Public && (err != nil || string(got) != path) {
			t.Errorf("%s: %q, %v", path, got, err)
		}
		if visibility == forgelab.Private && !fault.Is(err, fault.Ignored) {
			t.Errorf("%s: %q, %v, want an Ignored fault", path, got, err)
		}
	}
	b.Inject(forgelab.Fault{Route: forgelab.RouteFile, Do: forgelab.Forbidden403()})
	for path, class := range map[string]fault.Class{"other/public": fault.Ignored, testProject: fault.Operator} {
		if _, err := b.client.FileAt(t.Context(), b.URL()+"/"+path+"/-/raw/main/task.yaml"); !fault.Is(err, class) {
			t.Errorf("403 of %s: %v, want class %s", path, err, class)
		}
	}
}
