// SPDX-License-Identifier: Apache-2.0

package github

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// bench is a commit of a forge and a client to report on it.
type bench struct {
	*fake
	client provider.Client
	head   git.Head
}

func newBench(t *testing.T) bench {
	t.Helper()
	f, w := openFake(t, forge.Options{})
	sha := f.Commit("main", map[string]string{"x": "y"})
	client, err := w.Provider.Connect(t.Context(), w.BaseURL, w.Project, w.Credentials)
	if err != nil {
		t.Fatal(err)
	}
	return bench{f, client, git.Head{SHA: sha, Project: w.Project}}
}

// duplicate creates another check run of the same check, like a replica that was paused before its
// POST.
func (b bench) duplicate(t *testing.T, check status.Check) string {
	t.Helper()
	r, isGitHub := b.client.Reporter.(*repository)
	if !isGitHub {
		t.Fatal("not the GitHub client")
	}
	id, err := r.create(t.Context(), b.head.SHA, check)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Two events of one commit find no check that waits for approval, and both post one at the same
// time.
func TestPutSettlesConcurrentSharedChecks(t *testing.T) {
	b := newBench(t)
	shared := check(status.Queued, "")
	shared.Shared = true
	b.duplicate(t, shared)
	r, _ := b.client.Reporter.(*repository)
	if id, err := r.first(t.Context(), b.head.SHA, shared); err != nil || id == "" {
		t.Fatalf("got id %q, %v", id, err)
	}
	if got, want := b.shown(), []string{"completed/cancelled/Superseded", "queued//queued"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func check(state status.State, conclusion status.Conclusion) status.Check {
	return status.Check{
		Key: "k", Name: "Plumbline / build", ExternalID: "build-1", State: state, Conclusion: conclusion,
		Title: string(state), Summary: "s",
	}
}

// shown returns the state of each check run of the commit, oldest first.
func (b bench) shown() []string {
	var out []string
	for _, c := range b.Checks(b.head.SHA) {
		out = append(out, c.State+"/"+c.Conclusion+"/"+c.Title)
	}
	return out
}

func TestPutSettlesDuplicates(t *testing.T) {
	open, done := check(status.InProgress, ""), check(status.Completed, status.Success)
	const queued, succeeded, closed = "in_progress//in_progress", "completed/success/completed",
		"completed/cancelled/Superseded"
	cases := []struct {
		name   string
		stored []status.Check // oldest first
		known  int            // which of them the caller knows, from 1; 0 is none
		put    status.Check
		adopts int
		want   []string
	}{
		{"a higher one is adopted at the conclusion, the known one is superseded", []status.Check{open, open}, 1, done, 2,
			[]string{closed, succeeded}},
		{"the known one is the newest", []status.Check{open, open}, 2, done, 2, []string{closed, succeeded}},
		{"without an id the newest is taken", []status.Check{open, open, open}, 0, done, 3,
			[]string{closed, closed, succeeded}},
		{"a verdict that was given on the older one is given on the newest too", []status.Check{done, open}, 1, done, 2,
			[]string{closed, succeeded}},
		{"without a verdict to give, a completed older one is left as it is", []status.Check{done, open}, 0, open, 2,
			[]string{succeeded, queued}},
		{"a newest one that is completed stays so, and an open older one is closed", []status.Check{open, done}, 0, open, 2,
			[]string{closed, succeeded}},
		{"progress of a known one looks for no duplicates", []status.Check{open, open}, 1, open, 1, []string{queued, queued}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			ids := []string{""}
			for _, s := range c.stored {
				ids = append(ids, b.duplicate(t, s))
			}
			id, err := b.client.Put(t.Context(), b.head, ids[c.known], c.put, false)
			if err != nil || id != ids[c.adopts] {
				t.Errorf("got id %s, %v, want %s", id, err, ids[c.adopts])
			}
			got := b.shown()
			if len(got) != len(c.want) {
				t.Fatalf("got %v, want %v", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("check run %d is %s, want %s", i+1, got[i], c.want[i])
				}
			}
		})
	}
}

func TestPutRecreatesMissingCheck(t *testing.T) {
	for _, put := range []status.Check{check(status.InProgress, ""), check(status.Completed, status.Failure)} {
		b := newBench(t)
		id, err := b.client.Put(t.Context(), b.head, "999999", put, false)
		if err != nil || id == "999999" || len(b.shown()) != 1 {
			t.Errorf("%s: got id %s, %v, %v", put.State, id, err, b.shown())
		}
	}
}

func TestPutIgnoresChecksOfAnotherApp(t *testing.T) {
	b := newBench(t)
	other := b.CreateApp(testApp+1, "other", appKey(), "")
	installation := b.Install(other.ID, "acme")
	foreign, err := New(Options{}).Connect(t.Context(), b.URL(), b.head.Project, provider.Credentials{
		AppID: other.ID, PrivateKey: []byte(other.PrivateKeyPEM), InstallationID: installation,
	})
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := foreign.Put(t.Context(), b.head, "", check(status.InProgress, ""), false)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := b.client.Put(t.Context(), b.head, "", check(status.Completed, status.Failure), false)
	if err != nil || ours == theirs {
		t.Errorf("ours %s, theirs %s, %v", ours, theirs, err)
	}
}

func TestPutReturnsIDIfDuplicateStaysPending(t *testing.T) {
	b := newBench(t)
	old := b.duplicate(t, check(status.InProgress, ""))
	newest := b.duplicate(t, check(status.InProgress, ""))
	b.Inject(forge.Fault{Route: forge.RouteCheckUpdate, Do: forge.ServerError502HTML(), Match: func(r *http.Request) bool {
		return r.PathValue("id") == old || endsWith(r, old)
	}})
	id, err := b.client.Put(t.Context(), b.head, old, check(status.Completed, status.Success), false)
	if id != newest || !fault.Is(err, fault.Transient) {
		t.Errorf("got id %s, %v, want %s and a Transient fault", id, err, newest)
	}
}

func endsWith(r *http.Request, id string) bool {
	_, err := strconv.Atoi(id)
	return err == nil && len(r.URL.Path) > len(id) && r.URL.Path[len(r.URL.Path)-len(id)-1:] == "/"+id
}

func TestUpdateSendsStartedAt(t *testing.T) {
	b := newBench(t)
	id, err := b.client.Put(t.Context(), b.head, "", check(status.Queued, ""), false)
	if err != nil {
		t.Fatal(err)
	}
	started := check(status.InProgress, "")
	started.StartedAt = at("2026-05-02T10:00:00Z")
	if _, err := b.client.Put(t.Context(), b.head, id, started, false); err != nil {
		t.Fatal(err)
	}
	run, _ := b.Current(testRepo, b.head.SHA, started.Name)
	if !run.StartedAt.Equal(started.StartedAt.Time) {
		t.Errorf("started at %s, want %s", run.StartedAt, started.StartedAt)
	}
}

func TestPutSendsNoContradiction(t *testing.T) {
	b := newBench(t)
	for _, c := range []status.Check{
		check(status.InProgress, status.Success), check(status.Completed, ""), check(status.Completed, "neutral"),
		{Name: "n", State: status.Queued}, {ExternalID: "e", State: status.Queued},
	} {
		if _, err := b.client.Put(t.Context(), b.head, "", c, false); !fault.Is(err, fault.Operator) {
			t.Errorf("%+v: %v, want an Operator fault", c, err)
		}
	}
	if got := len(b.Writes()); got != 0 {
		t.Errorf("%d writes were sent", got)
	}
}

// A check that only this process posted is not looked up: each report is one call, and one more if
// it may arrive after a conclusion.
func TestPutSkipsLookUpOfSoleCheck(t *testing.T) {
	b := newBench(t)
	id := ""
	for _, c := range []status.Check{check(status.Queued, ""), check(status.InProgress, ""),
		check(status.Completed, status.Success)} {
		now, err := b.client.Put(t.Context(), b.head, id, c, true)
		if err != nil || now == "" || id != "" && now != id {
			t.Fatalf("id %q after %q, %v", now, id, err)
		}
		id = now
	}
	if got := b.shown(); len(got) != 1 || got[0] != "completed/success/completed" {
		t.Errorf("%v", got)
	}
	if lists, reads := b.Count(forge.RouteCheckList), b.Count(forge.RouteCheckGet); lists != 0 || reads != 1 {
		t.Errorf("%d lists and %d reads of check runs, want none and one, for the update", lists, reads)
	}
	if _, err := b.client.Put(t.Context(), b.head, "no id of ours", check(status.Completed, status.Success),
		true); err != nil || len(b.shown()) != 1 {
		t.Errorf("an id that is none is looked up: %v, %v", err, b.shown())
	}
}

// A report that waited for its turn is not sent by a process that was paused in the meantime.
func TestPutWithoutLookUpIsFenced(t *testing.T) {
	b := newBench(t)
	stopped := errors.New("stopped")
	ctx := provider.Fenced(t.Context(), func() error { return stopped })
	if _, err := b.client.Put(ctx, b.head, "", check(status.Queued, ""), true); !errors.Is(err, stopped) ||
		len(b.shown()) != 0 {
		t.Errorf("%v, %v", err, b.shown())
	}
	if fault.Of(stopped).Unknown {
		t.Error("what was not sent has an unknown outcome")
	}
	if _, err := b.client.Files(ctx, b.head.SHA, ".tekton"); err != nil {
		t.Errorf("a read: %v", err)
	}
}
