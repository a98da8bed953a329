// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/hooks"
	"github.com/plumbline-ci/plumbline/pkg/provider/providertest"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// hooked is a project whose webhook calls a receiver that answers with a code.
type hooked struct {
	*fake
	w      providertest.Env
	hook   int64
	answer atomic.Int64
	log    provider.HookLog
}

func openHooked(t *testing.T, level forgelab.Level) *hooked {
	f, w := openFake(t, forgelab.Options{})
	h := &hooked{fake: f, w: w}
	h.answer.Store(http.StatusServiceUnavailable)
	receiver := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(int(h.answer.Load()))
	}))
	t.Cleanup(receiver.Close)
	f.GitLab.Commit(testProject, "main", forgelab.Change{Message: "first", Files: map[string]string{"README.md": "hello"}})
	h.hook = f.AddHook(testProject, receiver.URL, testSecret)
	w.Credentials.Token = f.CreateToken(forgelab.NewToken{Project: testProject, Level: level}).Value
	w.Project.ID = 0 // is not needed
	var err error
	if h.log, err = w.Provider.Hooks(w.BaseURL, w.Project, w.Credentials); err != nil {
		t.Fatal(err)
	}
	return h
}

// send delivers a push to the second hook of the project.
func (h *hooked) send(t *testing.T, starts bool) string {
	t.Helper()
	d := h.PushDelivery(forgelab.PushEvent{Project: testProject, Ref: "refs/heads/main", HookID: h.hook})
	if !starts {
		d.Event = forgelab.NoteHook
		d.Header.Set("X-Gitlab-Event", "Issue Hook")
	}
	if _, _, err := h.Deliver(t.Context(), "", d); err != nil {
		t.Fatal(err)
	}
	return d.Key
}

// A Maintainer's token reads undelivered webhooks, resends them, and gets their answers.
func TestHookLogResendsFailedAttempts(t *testing.T) {
	h := openHooked(t, forgelab.Maintainer)
	first, none := h.send(t, true), h.send(t, false)
	hooks, err := h.log.Hooks(t.Context())
	if err != nil || len(hooks) != 2 || hooks[1].ID != h.hook || hooks[1].Project != h.project.ID ||
		hooks[1].State != provider.HookCalled {
		t.Fatalf("hooks: %+v %v", hooks, err)
	}
	failed, more, err := h.log.Attempts(t.Context(), h.hook, true, 1)
	if err != nil || more || len(failed) != 2 || failed[1].GUID != first || failed[0].GUID != none ||
		!failed[1].Starts || failed[0].Starts || failed[1].Status != 503 || failed[1].At.IsZero() ||
		failed[1].ID >= failed[0].ID {
		t.Fatalf("failed: %+v %v %v", failed, more, err)
	}
	if status, err := h.log.Resend(t.Context(), h.hook, failed[1].ID); status != 503 || err != nil {
		t.Errorf("resend: %d %v", status, err)
	}
	h.answer.Store(http.StatusAccepted)
	if status, err := h.log.Resend(t.Context(), h.hook, failed[1].ID); status != 202 || err != nil {
		t.Errorf("resend: %d %v", status, err)
	}
	all, _, err := h.log.Attempts(t.Context(), h.hook, false, 1)
	if err != nil || len(all) != 4 || !all[0].Succeeded() || all[0].GUID != first {
		t.Errorf("all: %+v %v", all, err)
	}
}

// The log comes in pages of 20.
func TestHookLogPages(t *testing.T) {
	h := openHooked(t, forgelab.Maintainer)
	h.answer.Store(http.StatusAccepted)
	for range hooks.PerPage + 1 {
		h.send(t, true)
	}
	first, more, err := h.log.Attempts(t.Context(), h.hook, false, 1)
	if err != nil || !more || len(first) != hooks.PerPage {
		t.Fatalf("first page: %d %v %v", len(first), more, err)
	}
	if second, more, err := h.log.Attempts(t.Context(), h.hook, false, 2); err != nil || more || len(second) != 1 {
		t.Errorf("second page: %d %v %v", len(second), more, err)
	}
}

// Events have their whole payloads: a page of large ones is read one by one, and one that is too
// large alone hides no other.
func TestHookLogReadsLargePage(t *testing.T) {
	h := openHooked(t, forgelab.Maintainer)
	h.w.Credentials.Token = h.CreateToken(forgelab.NewToken{Project: testProject, Level: forgelab.Maintainer}).Value
	h.answer.Store(http.StatusAccepted)
	for range hooks.PerPage + 1 {
		h.send(t, true)
	}
	for _, c := range []struct {
		limit int64
		read  int
	}{{1 << 14, hooks.PerPage}, {100, 0}} {
		log, err := New(Options{Limits: provider.Limits{Answer: c.limit}}).Hooks(h.w.BaseURL, h.w.Project, h.w.Credentials)
		if err != nil {
			t.Fatal(err)
		}
		first, more, err := log.Attempts(t.Context(), h.hook, false, 1)
		if err != nil || !more || len(first) != c.read {
			t.Errorf("of answers of %d bytes: %d, %v, %v", c.limit, len(first), more, err)
		}
	}
}

// A tenant's own server may answer anything: what is stored of a log is limited by the pages that
// are read.
func TestHookLogRefusesOversizedPage(t *testing.T) {
	entries := hooks.PerPage
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write([]byte("[" + strings.Repeat(`{"id":1},`, entries-1) + `{"id":1}]`)) // each page is full
	}))
	t.Cleanup(server.Close)
	log, err := New(Options{}).Hooks(server.URL, v1alpha1.Project{Owner: "acme", Name: "app",
		URL: server.URL + "/acme/app"}, provider.Credentials{Token: "t", Reach: loopback()})
	if err != nil {
		t.Fatal(err)
	}
	if page, _, err := log.Attempts(t.Context(), 7, true, 1); err != nil || len(page) != entries {
		t.Errorf("a full page: %d, %v", len(page), err)
	}
	entries = 10_000
	if page, _, err := log.Attempts(t.Context(), 7, true, 1); fault.Of(err) == nil ||
		fault.Of(err).Reason != provider.ReasonBadAnswer {
		t.Errorf("%d are kept of a page, %v", len(page), err)
	}
}

// A read that is not possible says why.
func TestHookLogErrors(t *testing.T) {
	developer := openHooked(t, forgelab.Developer)
	if _, err := developer.log.Hooks(t.Context()); fault.Of(err).Reason != fault.ReasonPermissionMissing {
		t.Errorf("a Developer's token: %v", err)
	}
	h := openHooked(t, forgelab.Maintainer)
	if _, _, err := h.log.Attempts(t.Context(), 9999, true, 1); !fault.Is(err, fault.Ignored) {
		t.Errorf("a GitLab without such a log: %v", err)
	}
	if _, err := h.log.Resend(t.Context(), h.hook, 9999); !fault.Is(err, fault.Ignored) {
		t.Errorf("an event that is gone: %v", err)
	}
	h.send(t, true)
	failed, _, err := h.log.Attempts(t.Context(), h.hook, true, 1)
	if err != nil || len(failed) != 1 {
		t.Fatalf("failed: %v %v", failed, err)
	}
	for range 3 {
		h.send(t, true)
	}
	if hooks, err := h.log.Hooks(t.Context()); err != nil || hooks[1].State != provider.HookPaused ||
		hooks[1].Until.IsZero() {
		t.Errorf("after four failures: %+v %v", hooks, err)
	}
	if _, err := h.log.Resend(t.Context(), h.hook, failed[0].ID); fault.Of(err) == nil ||
		fault.Of(err).Reason != "HookPaused" {
		t.Errorf("resend of a paused hook: %v", err)
	}
	h.SetHookURL(h.hook, "http://127.0.0.1:1")
	if _, err := h.log.Resend(t.Context(), h.hook, failed[0].ID); !fault.Is(err, fault.Ignored) {
		t.Errorf("resend to another URL: %v", err)
	}
}

// More than five in a minute are refused. That blocks no other use of the token.
func TestResendLimit(t *testing.T) {
	h := openHooked(t, forgelab.Maintainer)
	h.answer.Store(http.StatusAccepted)
	h.send(t, true)
	all, _, err := h.log.Attempts(t.Context(), h.hook, false, 1)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	refused := false
	for range 11 { // five in one minute and five in the next, if that starts during the loop
		_, err := h.log.Resend(t.Context(), h.hook, all[0].ID)
		refused = refused || fault.Is(err, fault.Throttled)
	}
	if !refused {
		t.Error("nothing was refused")
	}
	if _, err := h.log.Hooks(t.Context()); err != nil {
		t.Errorf("after that: %v", err)
	}
}
