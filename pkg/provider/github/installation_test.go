// SPDX-License-Identifier: Apache-2.0

package github

import (
	"net/http"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// installation is the App's on the repository.
func (b bench) installation() int64 {
	r, isGitHub := b.client.Reporter.(*repository)
	if !isGitHub {
		b.t.Fatal("not the GitHub client")
	}
	return r.runs.minter.installation
}

// G8: the App counts as uninstalled only if no look-up finds the installation and the App itself is
// found. Every other 404 of a mint is retried.
func TestMissingInstallation(t *testing.T) {
	json := http.Header{"Content-Type": {"application/json"}}
	for sentence, c := range map[string]struct {
		prepare func(b bench)
		class   fault.Class
		reason  string
	}{
		"the App was uninstalled": {func(b bench) { b.Uninstall(b.installation()) }, fault.Operator, "InstallationGone"},
		"it was suspended":        {func(b bench) { b.Suspend(b.installation(), true) }, fault.Operator, "PermissionMissing"},
		"a replica does not show the installation to the mint": {func(b bench) {
			b.Inject(forge.Fault{Route: forge.RouteToken, Do: forge.NotFound404()})
		}, fault.Operator, "InstallationNotFound"},
		"nor does it by the repository": {func(b bench) {
			b.Inject(forge.Fault{Route: forge.RouteToken, Do: forge.NotFound404()})
			b.Inject(forge.Fault{Route: forge.RouteRepoInstallation, Do: forge.NotFound404()})
		}, fault.Operator, "InstallationNotFound"},
		"something that is no GitHub answers 404 to everything": {func(b bench) {
			for _, route := range []string{forge.RouteToken, forge.RouteRepoInstallation, forge.RouteInstallation,
				forge.RouteApp} {
				b.Inject(forge.Fault{Route: route, Do: forge.NotFound404()})
			}
		}, fault.Operator, "InstallationNotFound"},
		"another App answers": {func(b bench) {
			b.Uninstall(b.installation())
			b.Inject(forge.Fault{Route: forge.RouteApp, Do: forge.Answer(http.StatusOK, json, `{"id":1}`)})
		}, fault.Operator, "InstallationNotFound"},
		"GitHub fails while it is asked by the repository": {func(b bench) {
			b.Uninstall(b.installation())
			b.Inject(forge.Fault{Route: forge.RouteRepoInstallation, Do: forge.ServerError502HTML()})
		}, fault.Transient, "GitServiceUnavailable"},
		"GitHub fails while it is asked for the installation": {func(b bench) {
			b.Uninstall(b.installation())
			b.Inject(forge.Fault{Route: forge.RouteInstallation, Do: forge.ServerError502HTML()})
		}, fault.Transient, "GitServiceUnavailable"},
		"GitHub limits the App": {func(b bench) {
			b.Uninstall(b.installation())
			b.Inject(forge.Fault{Route: forge.RouteApp, Do: forge.SecondaryRateLimit(30)})
		}, fault.Throttled, "SecondaryRateLimited"},
		"a login page answers": {func(b bench) {
			b.Uninstall(b.installation())
			b.Inject(forge.Fault{Route: forge.RouteRepoInstallation,
				Do: forge.Answer(http.StatusOK, http.Header{"Content-Type": {"text/html"}}, "<html>")})
		}, fault.Transient, "BadAnswer"},
	} {
		t.Run(sentence, func(t *testing.T) {
			b := newBench(t)
			c.prepare(b)
			_, tokenErr := b.client.CloneToken(t.Context(), reading)
			_, again := b.client.CloneToken(t.Context(), reading)
			_, callErr := b.client.CanWrite(t.Context(), "dev")
			for _, err := range []error{tokenErr, again, callErr} {
				if f := fault.Of(err); f == nil || f.Class != c.class || f.Reason != c.reason {
					t.Errorf("%+v, want %s %s", f, c.class, c.reason)
				}
			}
			if first, second := fault.Of(tokenErr), fault.Of(again); first != nil && second != nil &&
				first.Message != second.Message {
				t.Errorf("%q, and then %q: want the same words each time", first.Message, second.Message)
			}
		})
	}
}

// An event of an App that was uninstalled and installed again names the installation that is gone:
// the repository's current one is used, for the same repository only.
func TestReinstalledAppServesEarlierEvents(t *testing.T) {
	b := newBench(t)
	b.Uninstall(b.installation())
	b.Install(testApp, "acme")
	token, err := b.client.CloneToken(t.Context(), reading)
	if err != nil {
		t.Fatal(err)
	}
	for repo, want := range map[string]int{"acme/app": http.StatusOK, "acme/other": http.StatusNotFound} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.APIURL()+"repos/"+repo, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token.Value)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", repo, resp.StatusCode, want)
		}
	}
}

// A repository that took over the name is not the one that the event came from, even if the App is
// installed there.
func TestReplacedRepositoryIsNotServed(t *testing.T) {
	b := newBench(t)
	b.Uninstall(b.installation())
	b.DeleteRepo(testRepo)
	b.CreateRepo("acme", "app", forge.RepoOptions{Private: true})
	b.Install(testApp, "acme")
	_, err := b.client.CloneToken(t.Context(), reading)
	if f := fault.Of(err); f == nil || f.Class != fault.Operator || f.Reason != "RepositoryNotInstalled" {
		t.Errorf("%+v, want Operator RepositoryNotInstalled", f)
	}
}
