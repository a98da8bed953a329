// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/test/forge/internal/asking"
)

func body(t *testing.T, d Delivery) map[string]any {
	t.Helper()
	return reply{asking.Reply{Body: d.Body}}.Object(t)
}

func TestPushDelivery(t *testing.T) {
	w := newFixture(t, Options{})
	push := func(ref string) map[string]any { return body(t, w.PushDelivery(PushEvent{Repo: "org/app", Ref: ref})) }
	shape := func(b map[string]any) string {
		head, _ := b["head_commit"].(map[string]any)
		return fmt.Sprintf("%s created=%v deleted=%v forced=%v commits=%d head=%.7s by %s", b["ref"], b["created"],
			b["deleted"],
			b["forced"], len(b["commits"].([]any)), text(head, "id"), text(b["sender"].(map[string]any), "login"))
	}
	second := w.Commit("org/app", "main", Change{Author: "bob", Files: map[string]string{"b": "1", "README.md": Deleted}})
	got := []string{shape(push("refs/heads/main"))}
	b := push("refs/heads/main")
	repo := b["repository"].(map[string]any)
	cm := b["commits"].([]any)[0].(map[string]any)
	want := map[string]any{"before": w.sha, "after": second, "html": w.URL() + "/org/app",
		"clone":   w.URL() + "/org/app.git",
		"default": "main", "private": true, "inst": float64(w.inst), "added": []any{"b"}, "removed": []any{"README.md"},
		"pusher": "bob"}
	have := map[string]any{"before": b["before"], "after": b["after"], "html": repo["html_url"],
		"clone":   repo["clone_url"],
		"default": repo["default_branch"], "private": repo["private"], "inst": b["installation"].(map[string]any)["id"],
		"added": cm["added"], "removed": cm["removed"], "pusher": b["pusher"].(map[string]any)["name"]}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("a push (-want +got):\n%s", diff)
	}
	topic := w.Commit("org/app", "topic", Change{Files: map[string]string{"t": "1"}})
	w.CreateTag("org/app", "v1", second, "bob")
	got = append(got, shape(push("refs/heads/topic")), shape(push("refs/tags/v1")))
	w.DeleteBranch("org/app", "topic", "bob")
	got = append(got, shape(push("refs/heads/topic")))
	back := w.Commit("org/app", "main", Change{Author: "bob", Parent: w.sha, Files: map[string]string{"c": "1"}})
	got = append(got, shape(push("refs/heads/main")))
	lines := []string{
		"refs/heads/main created=false deleted=false forced=false commits=1 head=" + second[:7] + " by bob",
		"refs/heads/topic created=true deleted=false forced=false commits=1 head=" + topic[:7] + " by octocat",
		"refs/tags/v1 created=true deleted=false forced=false commits=0 head=" + second[:7] + " by bob",
		"refs/heads/topic created=false deleted=true forced=false commits=0 head= by bob",
		"refs/heads/main created=false deleted=false forced=true commits=1 head=" + back[:7] + " by bob",
	}
	if diff := cmp.Diff(lines, got); diff != "" {
		t.Errorf("pushes (-want +got):\n%s", diff)
	}
}

func TestPullRequestDelivery(t *testing.T) {
	w := newFixture(t, Options{})
	one := w.Commit("org/app", "topic", Change{Files: map[string]string{"a": "1"}})
	n := w.OpenPullRequest(NewPull{Base: "org/app", HeadBranch: "topic", Author: "carol", Draft: true})
	opened := body(t, w.PullRequestDelivery(PullEvent{Repo: "org/app", Number: n, Action: "opened"}))
	pr := opened["pull_request"].(map[string]any)
	if pr["draft"] != true || text(opened["sender"].(map[string]any), "login") != "carol" || opened["before"] != nil {
		t.Errorf("opened: %v", opened)
	}
	two := w.Commit("org/app", "topic", Change{Files: map[string]string{"a": "2"}})
	w.ReadyPull("org/app", n)
	w.LabelPull("org/app", n, "ok-to-test")
	sync := body(t, w.PullRequestDelivery(PullEvent{Repo: "org/app", Number: n, Action: "synchronize"}))
	if sync["before"] != one || sync["after"] != two || sync["pull_request"].(map[string]any)["draft"] != false {
		t.Errorf("synchronize: before %v after %v", sync["before"], sync["after"])
	}
	lab := body(t, w.PullRequestDelivery(PullEvent{
		Repo: "org/app", Number: n, Action: "labeled", Label: "ok-to-test", Sender: "dave",
	}))
	if text(lab["label"].(map[string]any), "name") != "ok-to-test" ||
		text(lab["sender"].(map[string]any), "login") != "dave" {
		t.Errorf("labeled: %v", lab["label"])
	}
}

func TestDeliver(t *testing.T) {
	w := newFixture(t, Options{})
	rc := asking.NewReceiver(t)
	d := w.PushDelivery(PushEvent{Repo: "org/app", Ref: "refs/heads/main"})
	rc.Code.Store(503)
	code, answer, err := w.Deliver(t.Context(), rc.URL, d)
	if code != 503 || string(answer) != "seen" || err != nil {
		t.Fatalf("delivery: %d %q %v", code, answer, err)
	}
	r, sent := <-rc.Got, <-rc.Body
	for k, want := range map[string]string{
		"X-Github-Event": "push", "Content-Type": "application/json", "X-Github-Hook-Id": itoa(w.app.HookID),
		"X-Github-Hook-Installation-Target-Type": "integration", "X-Github-Hook-Installation-Target-Id": "7",
		// Over the body that arrived, not the one that was built.
		"X-Hub-Signature-256": "sha256=" + mac(sha256.New, "hush", sent),
	} {
		if got := r.Header.Get(k); got != want {
			t.Errorf("%s is %q, want %q", k, got, want)
		}
	}
	if !strings.HasPrefix(r.UserAgent(), "GitHub-Hookshot/") || !json.Valid(sent) ||
		!strings.HasPrefix(r.Header.Get("X-Hub-Signature"), "sha1=") {
		t.Errorf("agent %q, body %.40s", r.UserAgent(), sent)
	}
	if !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(r.Header.Get("X-Github-Delivery")) {
		t.Errorf("the delivery's ID %q is no UUID", r.Header.Get("X-Github-Delivery"))
	}
	rc.Code.Store(202)
	if code, _, err := w.Redeliver(t.Context(), d.GUID); code != 202 || err != nil {
		t.Fatalf("redelivery: %d %v", code, err)
	}
	r2, again := <-rc.Got, <-rc.Body
	if string(again) != string(sent) || r2.Header.Get("X-GitHub-Delivery") != d.GUID {
		t.Error("a redelivery keeps body and ID")
	}
	var log []string
	for _, x := range w.Deliveries() {
		log = append(log, fmt.Sprint(x.StatusCode, " ", x.Status, " ", x.Redelivery))
	}
	if diff := cmp.Diff([]string{"503 Invalid HTTP Response: 503 false", "202 OK true"}, log); diff != "" {
		t.Errorf("delivery log (-want +got):\n%s", diff)
	}
	if got := len(w.do("GET", "/app/hook/deliveries", w.jwt(), nil).List(t)); got != 2 {
		t.Errorf("deliveries over the API: %d", got)
	}
}

func TestDeliveryThatFails(t *testing.T) {
	w := newFixture(t, Options{DeliveryTimeout: 50 * time.Millisecond})
	stuck := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stuck }))
	defer srv.Close()
	defer close(stuck)
	if code, _, err := w.Deliver(t.Context(), srv.URL, w.PingDelivery(testApp)); code != 0 || err == nil {
		t.Errorf("a receiver that does not answer: %d %v", code, err)
	}
	w.opts.DeliveryTimeout = time.Minute // on a busy machine it may take a while to be refused
	if code, _, err := w.Deliver(t.Context(), "http://127.0.0.1:1", w.PingDelivery(testApp)); code != 0 || err == nil {
		t.Errorf("no receiver: %d %v", code, err)
	}
	log := w.Deliveries()
	if len(log) != 2 || log[0].Status != "timed out" || log[1].Status != "failed to connect to host" {
		t.Errorf("delivery log: %+v", log)
	}
	if _, _, err := w.Redeliver(t.Context(), "no-such"); err == nil {
		t.Error("an unknown delivery was redelivered")
	}
}
