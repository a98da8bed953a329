// SPDX-License-Identifier: Apache-2.0

package github

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// installation covers acme/app and acme/lib, both private. The account has acme/secret, too.
type installation struct {
	*forge.GitHub
	id       int64
	client   provider.Client
	projects map[string]v1alpha1.Project
	clock    *clocktesting.FakeClock
}

func installed(t *testing.T) installation {
	t.Helper()
	g := forge.New(forge.Options{})
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	g.CreateApp(testApp, "plumbline", appKey(), testSecret)
	projects, all := map[string]v1alpha1.Project{}, map[string]forge.Repo{}
	for _, name := range []string{"app", "lib", "secret"} {
		all[name] = g.CreateRepo("acme", name, forge.RepoOptions{Private: true})
		g.Commit("acme/"+name, "main", forge.Change{Message: "x", Files: map[string]string{"task.yaml": name}})
		projects[name] = v1alpha1.Project{ID: all[name].ID, Owner: "acme", Name: name, URL: all[name].HTMLURL}
	}
	id := g.Install(testApp, "acme", "acme/app", "acme/lib")
	w := envOf(g, all["app"], id)
	now := clocktesting.NewFakeClock(time.Now())
	client, err := New(Options{Now: now.Now}).Connect(t.Context(), w.BaseURL, w.Project, w.Credentials)
	if err != nil {
		t.Fatal(err)
	}
	return installation{g, id, client, projects, now}
}

// The list has what the installation covers, is cached, and leaves no token behind that reaches all
// of it.
func TestCoveredListsTheInstallation(t *testing.T) {
	g := installed(t)
	for range 2 {
		list, err := g.client.Covered(t.Context())
		if err != nil || len(list) != 2 || list[0].ID != g.projects["app"].ID || list[1].Name != "lib" ||
			list[1].OwnerID == 0 {
			t.Fatalf("%+v, %v", list, err)
		}
	}
	if n := g.Count(forge.RouteCovered); n != 1 {
		t.Errorf("%d lists were read, want one for both calls", n)
	}
	if left := g.TokensWith("metadata", "read"); len(left) != 0 {
		t.Errorf("%d tokens of the whole installation still work", len(left))
	}
	g.clock.Step(coveredFor)
	if _, err := g.client.Covered(t.Context()); err != nil || g.Count(forge.RouteCovered) != 2 {
		t.Errorf("later: %v, %d lists", err, g.Count(forge.RouteCovered))
	}
}

func TestCoveredReadsAllPages(t *testing.T) {
	g := installed(t)
	names := []string{"acme/app"}
	for i := range 150 {
		names = append(names, g.CreateRepo("acme", "repo-"+strconv.Itoa(i), forge.RepoOptions{}).FullName)
	}
	g.SetInstalledRepos(g.id, names...)
	list, err := g.client.Covered(t.Context())
	if err != nil || len(list) != 151 {
		t.Errorf("%d repositories, %v, want 151", len(list), err)
	}
	// A replica may not know a new token yet, which says nothing about the App's credentials.
	for _, code := range []int{http.StatusServiceUnavailable, http.StatusUnauthorized} {
		g.clock.Step(coveredFor)
		g.Inject(forge.Fault{Route: forge.RouteCovered, Count: 1, Do: forge.Answer(code, nil, `{}`)})
		if list, err := g.client.Covered(t.Context()); list != nil || !fault.Is(err, fault.Transient) {
			t.Errorf("answered %d: %d repositories, %v, want a Transient fault", code, len(list), err)
		}
	}
}

// The token of a run reads the other repositories that it is minted for, and no more of the
// account. GitHub mints none if the installation does not cover one of them.
func TestRunTokenReachesTheOthersAlone(t *testing.T) {
	g := installed(t)
	token, err := g.client.CloneToken(t.Context(), reading, g.projects["lib"])
	if err != nil {
		t.Fatal(err)
	}
	b := bench{fake: &fake{GitHub: g.GitHub}}
	for name, want := range map[string]int{"app": http.StatusOK, "lib": http.StatusOK, "secret": http.StatusNotFound} {
		if got := b.asRun(t, http.MethodGet, "repos/acme/"+name+"/contents/task.yaml", token.Value, ""); got != want {
			t.Errorf("acme/%s: %d, want %d", name, got, want)
		}
	}
	own, err := g.client.CloneToken(t.Context(), reading)
	if err != nil ||
		b.asRun(t, http.MethodGet, "repos/acme/lib/contents/task.yaml", own.Value, "") != http.StatusNotFound {
		t.Errorf("a token without others reads acme/lib: %v", err)
	}
	if _, err := g.client.Covered(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := g.client.CloneToken(t.Context(), reading, g.projects["secret"]); !fault.Is(err, fault.Operator) {
		t.Errorf("outside of the installation: %v, want an Operator fault", err)
	}
	if _, err := g.client.Covered(t.Context()); err != nil || g.Count(forge.RouteCovered) != 2 {
		t.Errorf("after a refused mint the list is read again: %v, %d lists", err, g.Count(forge.RouteCovered))
	}
}

// A file of another private repository is read only if it is one of the others.
func TestFileAtReadsTheOthers(t *testing.T) {
	g := installed(t)
	page := g.URL() + "/acme/LIB/blob/main/task.yaml"
	if got, err := g.client.FileAt(t.Context(), page, g.projects["lib"]); err != nil || string(got) != "lib" {
		t.Errorf("one of the others: %q, %v", got, err)
	}
	if got, err := g.client.FileAt(t.Context(), page); got != nil || !fault.Is(err, fault.Ignored) {
		t.Errorf("without others: %q, %v, want an Ignored fault", got, err)
	}
	secret := g.URL() + "/acme/secret/blob/main/task.yaml"
	if got, err := g.client.FileAt(t.Context(), secret, g.projects["lib"]); got != nil || !fault.Is(err, fault.Ignored) {
		t.Errorf("another one: %q, %v, want an Ignored fault", got, err)
	}
}
