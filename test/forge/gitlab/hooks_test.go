// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/test/forge/internal/asking"
)

func TestDeliver(t *testing.T) {
	w := newFixture(t, Options{})
	rc := asking.NewReceiver(t)
	w.SetHookURL(w.hook, rc.URL)
	d := w.PushDelivery(PushEvent{Project: app, Ref: "refs/heads/main"})
	code, answer, err := w.Deliver(t.Context(), "", d)
	if code != 202 || string(answer) != "seen" || err != nil {
		t.Fatalf("delivery: %d %q %v", code, answer, err)
	}
	first, sent := <-rc.Got, <-rc.Body
	for k, want := range map[string]string{
		"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": "hush", "X-Gitlab-Instance": w.URL(),
		"Content-Type": "application/json", "Idempotency-Key": d.Key,
	} {
		if got := first.Header.Get(k); got != want {
			t.Errorf("%s is %q, want %q", k, got, want)
		}
	}
	uuid := regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	for _, k := range []string{"Idempotency-Key", "X-Gitlab-Event-Uuid", "X-Gitlab-Webhook-Uuid"} {
		if !uuid.MatchString(first.Header.Get(k)) {
			t.Errorf("%s is %q, no UUID", k, first.Header.Get(k))
		}
	}
	if code, _, err := w.Resend(t.Context(), d.Key); code != 202 || err != nil {
		t.Fatalf("resending: %d %v", code, err)
	}
	second, again := <-rc.Got, <-rc.Body
	if string(again) != string(sent) || second.Header.Get("Idempotency-Key") != d.Key ||
		second.Header.Get("X-Gitlab-Event-UUID") == first.Header.Get("X-Gitlab-Event-UUID") ||
		second.Header.Get("X-Gitlab-Webhook-UUID") == first.Header.Get("X-Gitlab-Webhook-UUID") {
		t.Error("resending keeps body and Idempotency-Key, and nothing else that is random")
	}
	tok := w.CreateToken(NewToken{Project: app, Level: Maintainer}).Value
	events := w.do("GET", at+"/hooks/"+itoa(w.hook)+"/events", tok, nil).List(t)
	if len(events) != 2 || text(events[0]["request_headers"].(map[string]any), "X-Gitlab-Token") != "[REDACTED]" ||
		text(events[0]["request_data"].(map[string]any), "object_kind") != "push" {
		t.Errorf("events over the API: %v", events)
	}
	if r := w.get("/hooks"); r.Status != 403 {
		t.Errorf("hooks for a developer: %d", r.Status)
	}
}

func TestFailingHookIsPaused(t *testing.T) {
	var ahead atomic.Int64
	w := newFixture(t, Options{Now: func() time.Time { return time.Unix(1_800_000_000+ahead.Load(), 0) }})
	rc := asking.NewReceiver(t)
	d := w.PushDelivery(PushEvent{Project: app, Ref: "refs/heads/main"})
	send := func() string {
		code, _, err := w.Deliver(t.Context(), rc.URL, d)
		s := w.HookState(w.hook)
		pause := max(0, s.DisabledUntil.Unix()-1_800_000_000-ahead.Load())
		if errors.Is(err, ErrHookDisabled) {
			return "not sent"
		}
		return fmt.Sprint(code, " ", s.AlertStatus, " ", s.Failures, " ", pause)
	}
	rc.Code.Store(400)
	got := []string{send(), send(), send(), send(), send()}
	ahead.Add(61)
	rc.Code.Store(500)
	got = append(got, send())
	ahead.Add(121)
	rc.Code.Store(200)
	got = append(got, send())
	rc.Code.Store(302)
	got = append(got, send())
	want := []string{"400 executable 1 0", "400 executable 2 0", "400 executable 3 0", "400 temporarily_disabled 4 60",
		"not sent",
		"500 temporarily_disabled 5 120", "200 executable 0 0", "302 executable 0 0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a hook whose receiver fails (-want +got):\n%s", diff)
	}
	// The pause grows to a day, and the fortieth failure is the end.
	rc.Code.Store(503)
	longest := int64(0)
	for range 40 {
		send()
		longest = max(longest, w.HookState(w.hook).DisabledUntil.Unix()-1_800_000_000-ahead.Load())
		ahead.Add(24*3600 + 1)
	}
	if s := w.HookState(w.hook); s.AlertStatus != HookDisabled || s.Failures != 40 || longest != 24*3600 {
		t.Errorf("after 40 failures: %+v, longest pause %d s", s, longest)
	}
	if _, _, err := w.Resend(t.Context(), d.Key); !errors.Is(err, ErrHookDisabled) {
		t.Errorf("a disabled hook resends: %v", err)
	}
	rc.Code.Store(200)
	if _, _, err := w.TestHook(t.Context(), rc.URL, d); err != nil || w.HookState(w.hook).AlertStatus != HookExecutable {
		t.Errorf("a test that goes well ends it: %v %+v", err, w.HookState(w.hook))
	}
}

func TestDeliveryThatFails(t *testing.T) {
	w := newFixture(t, Options{DeliveryTimeout: 50 * time.Millisecond, KeepFailingHooks: true})
	stuck := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stuck }))
	defer srv.Close()
	defer close(stuck)
	d := w.PushDelivery(PushEvent{Project: app, Ref: "refs/heads/main"})
	if code, _, err := w.Deliver(t.Context(), srv.URL, d); code != 0 || err == nil {
		t.Errorf("a receiver that does not answer: %d %v", code, err)
	}
	w.opts.DeliveryTimeout = time.Minute // on a busy machine it may take a while to be refused
	for range 4 {
		if code, _, err := w.Deliver(t.Context(), "http://127.0.0.1:1", d); code != 0 || err == nil ||
			errors.Is(err, ErrHookDisabled) {
			t.Errorf("no receiver: %d %v", code, err)
		}
	}
	log := w.Deliveries()
	if len(log) != 5 || log[0].Status != "internal error" || log[0].Resent || !log[1].Resent {
		t.Errorf("delivery log: %+v", log)
	}
	if _, _, err := w.Resend(t.Context(), "no-such"); err == nil {
		t.Error("an unknown delivery was resent")
	}
}

func TestNewURLRemovesTheToken(t *testing.T) {
	w := newFixture(t, Options{})
	tok := w.CreateToken(NewToken{Project: app, Level: Maintainer}).Value
	for _, step := range []struct {
		body map[string]any
		want string
	}{
		{map[string]any{"url": "https://one.example.com/", "token": "kept"}, "kept"},
		{map[string]any{"url": "https://one.example.com/"}, "kept"},
		{map[string]any{"url": "https://two.example.com/"}, ""},
	} {
		if r := w.do("PUT", at+"/hooks/"+itoa(w.hook), tok, step.body); r.Status != 200 {
			t.Fatalf("%v is answered %d", step.body, r.Status)
		}
		if got := w.Hooks(app)[0]; got.ID != w.hook || got.Token != step.want {
			t.Errorf("after %v: %+v", step.body, got)
		}
	}
}
