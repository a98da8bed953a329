// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// testIncoming: a request to /incoming names a project by its URL alone, and gets the commit that
// its branch is at.
func testIncoming(t *testing.T, open func(*testing.T) Env) {
	named := func(w Env) v1alpha1.Project {
		return v1alpha1.Project{Owner: strings.ToUpper(w.Project.Owner), Name: w.Project.Name, URL: w.Project.URL}
	}
	locate := func(t *testing.T, w Env, p v1alpha1.Project) (v1alpha1.Located, error) {
		t.Helper()
		login := w.Credentials
		login.InstallationID = 0
		return w.Provider.Locate(t.Context(), w.BaseURL, p, login)
	}
	t.Run("the project is found", func(t *testing.T) {
		w := open(t)
		commit(w, "main", "a")
		got, err := locate(t, w, named(w))
		if err != nil {
			t.Fatal(err)
		}
		want := w.Project
		want.OwnerID = got.Project.OwnerID
		if d := cmp.Diff(want, got.Project); d != "" || got.Project.OwnerID <= 0 {
			t.Error(d)
		}
		if got.InstallationID != w.Credentials.InstallationID {
			t.Errorf("the installation is %d", got.InstallationID)
		}
	})
	t.Run("a project that is not there", func(t *testing.T) {
		w := open(t)
		p := w.Project
		p.Name, p.URL = "gone", strings.TrimSuffix(p.URL, p.Name)+"gone"
		if _, err := locate(t, w, p); !fault.Is(err, fault.Operator) {
			t.Errorf("%v, want an Operator fault", err)
		}
	})
	t.Run("a project of another host", func(t *testing.T) {
		w := open(t)
		p := w.Project
		p.URL = "https://elsewhere.example/" + p.Owner + "/" + p.Name
		if _, err := locate(t, w, p); !fault.Is(err, fault.Operator) || w.Service.Calls() > 0 {
			t.Errorf("%v after %d calls, want an Operator fault and no call", err, w.Service.Calls())
		}
	})
	t.Run("an outage", func(t *testing.T) {
		w := open(t)
		at := ReadRepository
		if w.Mints {
			at = MintToken
		}
		w.Service.Fail(at, Unavailable, 0)
		if _, err := locate(t, w, w.Project); !fault.Is(err, fault.Transient) {
			t.Errorf("%v, want a Transient fault", err)
		}
	})
	t.Run("the commit is the tip of the branch", func(t *testing.T) {
		w := open(t)
		commit(w, branch, "a")
		want := commit(w, branch, "b")
		client := connect(t, w)
		event := pushed(w, "refs/heads/"+branch, "")
		event.EventType, event.Incoming = v1alpha1.EventIncoming, &v1alpha1.Incoming{Pipeline: "build"}
		got, err := client.Complete(t.Context(), event)
		if err != nil || got.SHA != want || event.SHA != "" {
			t.Fatalf("%+v, %v, want %s", got, err, want)
		}
		if !provider.IsSHA(got.SHA) || got.Incoming == nil {
			t.Errorf("%+v", got)
		}
		event.BaseRef = "refs/heads/gone"
		if _, err := client.Complete(t.Context(), event); !fault.Is(err, fault.Ignored) {
			t.Errorf("a branch that is not there: %v, want an Ignored fault", err)
		}
	})
}
