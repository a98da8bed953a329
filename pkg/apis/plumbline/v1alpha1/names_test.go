// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestEventNameIsStable(t *testing.T) {
	// A change of this name makes every redelivery across an upgrade a second event: it must never
	// change.
	const want = "pull-request-f3d34df3d5a8658474260dc0cd3c5570"
	got := v1alpha1.EventName("pull_request", "github", "GitHub.com", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
	if got != want {
		t.Errorf("EventName = %q, want %q", got, want)
	}
	if again := v1alpha1.ReopenedName(got, 20); again != want+"-r20" || !v1alpha1.Reopened(again) ||
		v1alpha1.Reopened(got) {
		t.Errorf("%s: reopened as %s, %t, and %t by itself", got, again, v1alpha1.Reopened(again), v1alpha1.Reopened(got))
	}
	if errs := validation.IsDNS1123Label(got + "-r20"); len(errs) > 0 {
		t.Errorf("%s-r20 is not a name and label value: %v", got, errs)
	}
}

func TestEventNameDiffersByEachInput(t *testing.T) {
	base := v1alpha1.EventName("push", "github", "github.com", "k1")
	for what, other := range map[string]string{
		"another kind":         v1alpha1.EventName("pull_request", "github", "github.com", "k1"),
		"another provider":     v1alpha1.EventName("push", "gitlab", "github.com", "k1"),
		"another host":         v1alpha1.EventName("push", "github", "ghe.example", "k1"),
		"another key":          v1alpha1.EventName("push", "github", "github.com", "k2"),
		"text that moved over": v1alpha1.EventName("push", "githubg", "ithub.com", "k1"),
	} {
		if other == base {
			t.Errorf("%s gives the same name %q", what, base)
		}
	}
}

func TestClaimName(t *testing.T) {
	a, b := v1alpha1.ClaimName("https://github.com/acme/app"), v1alpha1.ClaimName("https://github.com/acme/app2")
	if a == b {
		t.Errorf("two URLs have one claim name %q", a)
	}
	if errs := validation.IsDNS1123Label(a); len(errs) > 0 {
		t.Errorf("%q is not an object name: %v", a, errs)
	}
}

func TestKind(t *testing.T) {
	for want, spec := range map[string]v1alpha1.GitEventSpec{
		"push":         {Trigger: v1alpha1.TriggerPush},
		"pull_request": {Trigger: v1alpha1.TriggerPullRequest, PullRequest: &v1alpha1.PullRequest{Number: 1}},
		"comment": {Trigger: v1alpha1.TriggerPullRequest, PullRequest: &v1alpha1.PullRequest{Number: 1},
			Comment: &v1alpha1.Comment{ID: 1}},
	} {
		if got := spec.Kind(); got != want {
			t.Errorf("%+v is a %q, want %q", spec, got, want)
		}
	}
}

func TestCommentBodyIsNotStored(t *testing.T) {
	data, err := json.Marshal(v1alpha1.GitEventSpec{Comment: &v1alpha1.Comment{ID: 1, Body: "hunter2"}})
	if err != nil || strings.Contains(string(data), "hunter2") {
		t.Errorf("%s, %v", data, err)
	}
}

// The subject label is the same for all Repository objects of a namespace with the same URL, and
// for no others. Events of the previous version are found too.
func TestSubject(t *testing.T) {
	event := func(change func(*v1alpha1.GitEventSpec)) *v1alpha1.GitEventSpec {
		e := &v1alpha1.GitEventSpec{Repository: v1alpha1.RepositoryReference{
			Namespace: "team", Name: "app", UID: "1", URL: "https://git.example/acme/app",
		}, PullRequest: &v1alpha1.PullRequest{Number: 3}}
		change(e)
		return e
	}
	first := event(func(*v1alpha1.GitEventSpec) {})
	for name, c := range map[string]struct {
		change func(*v1alpha1.GitEventSpec)
		same   bool
	}{
		"created again": {func(e *v1alpha1.GitEventSpec) { e.Repository.UID = "2" }, true},
		"renamed": {
			func(e *v1alpha1.GitEventSpec) { e.Repository.Name, e.Repository.UID = "other", "2" }, true,
		},
		"spelled in another way": {
			func(e *v1alpha1.GitEventSpec) { e.Repository.URL = "HTTPS://GIT.example/Acme/app.git/" }, true,
		},
		"of another namespace": {func(e *v1alpha1.GitEventSpec) { e.Repository.Namespace = "other" }, false},
		"of another URL": {
			func(e *v1alpha1.GitEventSpec) { e.Repository.URL = "https://git.example/acme/other" }, false,
		},
		"of another pull request":  {func(e *v1alpha1.GitEventSpec) { e.PullRequest.Number = 4 }, false},
		"of a commit":              {func(e *v1alpha1.GitEventSpec) { e.PullRequest, e.SHA = nil, "3" }, false},
		"of a URL without a claim": {func(e *v1alpha1.GitEventSpec) { e.Repository.URL = "git.example" }, false},
	} {
		if got := event(c.change).Subject() == first.Subject(); got != c.same {
			t.Errorf("%s: the same subject is %t", name, got)
		}
	}
	if want := first.Subject() + ",5ab4f84230fc36f144e8626fdb8c0212"; first.Subjects() != want { // of "1 pull 3"
		t.Errorf("found by %s, want %s", first.Subjects(), want)
	}
}
