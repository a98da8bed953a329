// SPDX-License-Identifier: Apache-2.0

package github

import (
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/providertest"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/test/forge"
)

var (
	readsChecks  = map[string]string{"metadata": "read", "contents": "read", "checks": "read"}
	writesChecks = map[string]string{"metadata": "read", "contents": "read", "checks": "write"}
)

// renewalBench is an App on an installation whose tokens may be too old, with its own clock.
type renewalBench struct {
	*fake
	t     *testing.T
	env   providertest.Env
	clock *clocktesting.FakeClock
	sha   string
}

func newRenewalBench(t *testing.T) *renewalBench {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Now())
	f, w := openFake(t, forge.Options{}) // the App signs with the real time
	w.Provider = New(Options{Now: clock.Now})
	return &renewalBench{fake: f, t: t, env: w, clock: clock, sha: f.Commit("main", map[string]string{"x": "y"})}
}

// connect is a client of one attempt.
func (b *renewalBench) connect(project v1alpha1.Project) provider.Client {
	b.t.Helper()
	client, err := b.env.Provider.Connect(b.t.Context(), b.env.BaseURL, project, b.env.Credentials)
	if err != nil {
		b.t.Fatal(err)
	}
	return client
}

func (b *renewalBench) put() error {
	_, err := b.connect(b.env.Project).Put(b.t.Context(), git.Head{SHA: b.sha, Project: b.env.Project}, "",
		check(status.Queued, ""), false)
	return err
}

func (b *renewalBench) wantReason(err error, reason string) {
	b.t.Helper()
	if f := fault.Of(err); f == nil || f.Reason != reason {
		b.t.Errorf("got %+v, want %s", f, reason)
	}
}

// A token has the permissions that the installation had when it was minted. What the operator
// grants later is used at the next attempt.
func TestGrantedPermissionIsUsedAtNextAttempt(t *testing.T) {
	b := newRenewalBench(t)
	b.SetPermissions(b.installed, readsChecks)
	b.wantReason(b.put(), fault.ReasonPermissionMissing)
	for range 3 {
		b.clock.Step(5 * time.Minute)
		b.wantReason(b.put(), fault.ReasonPermissionMissing)
	}
	b.SetPermissions(b.installed, writesChecks)
	b.clock.Step(5 * time.Minute)
	if err := b.put(); err != nil {
		t.Errorf("after the permission was granted: %v", err)
	}
}

// GitHub limits mints: however many calls lack a permission, an installation renews a token once a
// minute.
func TestRefusedPermissionCostsOneMintPerMinute(t *testing.T) {
	b := newRenewalBench(t)
	b.SetPermissions(b.installed, readsChecks)
	b.wantReason(b.put(), fault.ReasonPermissionMissing)
	if got := b.Count(forge.RouteToken); got != 1 {
		t.Errorf("%d mints: a token that was just minted is not renewed", got)
	}
	for range 12 { // six minutes
		b.clock.Step(30 * time.Second)
		for range 5 {
			b.wantReason(b.put(), fault.ReasonPermissionMissing)
		}
	}
	if got := b.Count(forge.RouteToken) - 1; got != 6 {
		t.Errorf("%d renewals in six minutes, want one a minute", got)
	}
}

// One repository finds out that a permission was granted: the installation's other repositories
// need not wait for their minute.
func TestGrantAppliesToAllRepositories(t *testing.T) {
	b := newRenewalBench(t)
	b.SetPermissions(b.installed, readsChecks)
	projects := []v1alpha1.Project{b.env.Project}
	for i := range 5 {
		name := fmt.Sprint("more-", i)
		repo := b.CreateRepo("acme", name, forge.RepoOptions{Private: true})
		b.GitHub.Commit("acme/"+name, "main", forge.Change{Message: "first", Files: map[string]string{"x": name}})
		projects = append(projects, v1alpha1.Project{
			Owner: "acme", Name: name, ID: repo.ID, URL: repo.HTMLURL, DefaultBranch: "main",
		})
	}
	putAll := func() (failed int) {
		for _, project := range projects {
			client := b.connect(project)
			sha, err := client.DefaultBranch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.Put(t.Context(), git.Head{SHA: sha, Project: project}, "", check(status.Queued, ""),
				false); err != nil {
				failed++
			}
		}
		return failed
	}
	if failed := putAll(); failed != len(projects) {
		t.Fatalf("%d fail without the permission", failed)
	}
	b.SetPermissions(b.installed, writesChecks)
	b.clock.Step(5 * time.Minute)
	if failed := putAll(); failed != 0 {
		t.Errorf("%d of %d repositories use a token without the permission still", failed, len(projects))
	}
}

// One repository that permanently lacks a permission renews its token each minute, and finds out
// for the others that something else was granted.
func TestRenewalsAreLimitedPerInstallation(t *testing.T) {
	b := newRenewalBench(t)
	b.SetPermissions(b.installed, readsChecks)
	repo := b.CreateRepo("acme", "busy", forge.RepoOptions{Private: true})
	busy := v1alpha1.Project{Owner: "acme", Name: "busy", ID: repo.ID, URL: repo.HTMLURL, DefaultBranch: "main"}
	sha := b.GitHub.Commit("acme/busy", "main", forge.Change{Message: "first", Files: map[string]string{"x": "y"}})
	ask := func() {
		_, err := b.connect(busy).Pulls(t.Context(), sha)
		b.wantReason(err, fault.ReasonPermissionMissing)
	}
	ask()
	b.wantReason(b.put(), fault.ReasonPermissionMissing)
	b.SetPermissions(b.installed, writesChecks)
	for range 30 {
		b.clock.Step(time.Minute)
		ask()
		b.clock.Step(10 * time.Second)
		if b.put() == nil {
			return
		}
	}
	t.Error("half an hour after the permission was granted it is not used")
}

// After a lifted suspension, or when a repository is added again, a new token is minted before the
// old one expires.
func TestOldTokenIsRenewedAfterSuspension(t *testing.T) {
	for name, change := range map[string]func(b *renewalBench, there bool){
		"suspended": func(b *renewalBench, there bool) { b.Suspend(b.installed, !there) },
		"removed from the installation": func(b *renewalBench, there bool) {
			repos := []string{"acme/other"}
			if there {
				repos = append(repos, testRepo)
			}
			b.SetInstalledRepos(b.installed, repos...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newRenewalBench(t)
			if err := b.put(); err != nil {
				t.Fatal(err)
			}
			change(b, false)
			b.clock.Step(5 * time.Minute)
			if err := b.put(); !fault.Is(err, fault.Operator) {
				t.Errorf("while it is gone: %v, want an operator's wait", err)
			}
			change(b, true)
			b.clock.Step(5 * time.Minute)
			err := b.put()
			if fault.Is(err, fault.Transient) { // a 404 of the token before says nothing: all is asked again
				err = b.put()
			}
			if err != nil {
				t.Errorf("when it is back: %v", err)
			}
		})
	}
}

// A file that the old token did not cover is not reported missing.
func TestOldTokenDoesNotHideFile(t *testing.T) {
	b := newRenewalBench(t)
	read := func() error {
		_, err := b.connect(b.env.Project).File(t.Context(), b.sha, "x")
		return err
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	b.SetInstalledRepos(b.installed, "acme/other")
	b.SetInstalledRepos(b.installed, "acme/other", testRepo)
	b.clock.Step(5 * time.Minute)
	if err := read(); !fault.Is(err, fault.Transient) {
		t.Errorf("with a token that does not see the repository: %v, want a retry", err)
	}
	if err := read(); err != nil {
		t.Errorf("with the next one: %v", err)
	}
}

// A permanent refusal is returned, and the token stays if no other one can be minted.
func TestTokenStaysIfRenewalFails(t *testing.T) {
	b := newRenewalBench(t)
	if err := b.put(); err != nil {
		t.Fatal(err)
	}
	b.clock.Step(5 * time.Minute)
	b.Inject(forge.Fault{Route: forge.RouteCheckCreate, Count: 1, Do: forge.Forbidden403()})
	b.Inject(forge.Fault{Route: forge.RouteToken, Do: forge.ServerError502HTML()})
	_, err := b.connect(b.env.Project).Put(t.Context(), git.Head{SHA: b.sha, Project: b.env.Project}, "",
		check(status.Queued, ""), true)
	b.wantReason(err, fault.ReasonPermissionMissing)
	if err := b.put(); err != nil {
		t.Errorf("the token that works is gone: %v", err)
	}
}
