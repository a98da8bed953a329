// SPDX-License-Identifier: Apache-2.0

package github

import (
	"bytes"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider/providertest"
)

func headers(event string, more ...string) http.Header {
	h := http.Header{}
	h.Set("X-GitHub-Event", event)
	h.Set("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
	h.Set("Content-Type", "application/json")
	for i := 0; i < len(more); i += 2 {
		h.Set(more[i], more[i+1])
	}
	return h
}

func recorded(t *testing.T, file string) []byte {
	t.Helper()
	body, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

const (
	shaBefore = "1481a2de7b2a7d02428ad93446ab166be7793fbb"
	shaHead   = "6113728f27ae82c7b1a177c8d03f9e96e0adf246"
)

// event is the event that all payloads in testdata share, changed.
func event(change func(*v1alpha1.GitEventSpec)) *v1alpha1.GitEventSpec {
	spec := &v1alpha1.GitEventSpec{
		Provider: "github", Host: "github.com", DeliveryKey: "72d3162e-cc78-11e3-81ab-4c9367dc0958", InstallationID: 4242,
		Project: v1alpha1.Project{
			Owner: "acme", OwnerID: 900, Name: "app", ID: 1001, URL: "https://github.com/acme/app",
			DefaultBranch: "main",
		},
		SHA: shaHead, HeadURL: "https://github.com/acme/app",
		Headers: map[string]string{
			"X-Github-Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958", "Content-Type": "application/json",
		},
	}
	change(spec)
	spec.Headers["X-Github-Event"] = string(spec.Trigger)
	return spec
}

func pushed(ref, before string) *v1alpha1.GitEventSpec {
	return event(func(s *v1alpha1.GitEventSpec) {
		s.Trigger, s.EventType, s.BaseRef, s.HeadRef, s.Before, s.Sender = "push", "push", ref, ref, before, "ada"
		s.Commit = &v1alpha1.Commit{Title: "Fix the pump", URL: "https://github.com/acme/app/commit/" + shaHead}
	})
}

func pulled(action, headURL string, headID int64) *v1alpha1.GitEventSpec {
	return event(func(s *v1alpha1.GitEventSpec) {
		s.Trigger, s.EventType, s.Action, s.BaseRef, s.HeadRef = "pull_request", "pull_request", action, "main", "topic"
		s.Sender, s.Actor, s.HeadURL = "dev", "maintainer", headURL
		s.PullRequest = &v1alpha1.PullRequest{
			Number: 12, Title: "Pump faster", Author: "dev", HeadProjectID: headID, Labels: []string{"kind/bug", "größe: S"},
		}
	})
}

// after is an event whose push replaced a commit.
func after(before string, spec *v1alpha1.GitEventSpec) *v1alpha1.GitEventSpec {
	spec.Before = before
	return spec
}

func labelled() *v1alpha1.GitEventSpec {
	spec := pulled("labeled", "https://github.com/acme/app", 1001)
	spec.EventType = "pull_request_labeled"
	return spec
}

// A merge queue tests a merge on a branch of its own, which its bot pushes: that is a push like
// others.
func TestDecodeMergeQueueAsPush(t *testing.T) {
	const ref, bot = "refs/heads/gh-readonly-queue/main/pr-1-" + shaBefore, "github-merge-queue[bot]"
	queued := strings.NewReplacer("refs/heads/feature/ü", ref, `"login": "ada"`, `"login": "`+bot+`"`, `"type": "User"`,
		`"type": "Bot"`, `"name": "ada"`, `"name": "`+bot+`"`).
		Replace(string(recorded(t, "push-new-branch.json")))
	want := pushed(ref, "")
	want.Sender = bot
	got, err := webhook{}.Decode(headers("push"), []byte(queued))
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(v1alpha1.GitEventSpec{}, "Body", "HappenedAt")); diff != "" ||
		err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func mergeGroup(action string) *v1alpha1.GitEventSpec {
	return event(func(s *v1alpha1.GitEventSpec) {
		s.Trigger, s.EventType, s.Action, s.BaseRef = "merge_group", "merge_group", action, "main"
		s.HeadRef, s.Before, s.Sender = "gh-readonly-queue/main/pr-12-"+shaBefore, shaBefore, "ada"
		s.Commit = &v1alpha1.Commit{Title: "Fix the pump", URL: "https://github.com/acme/app/commit/" + shaHead}
	})
}

func TestDecodeEndOfMergeGroup(t *testing.T) {
	const file = "merge-group-requested.json"
	body := strings.Replace(string(recorded(t, file)), "checks_requested", `destroyed", "reason": "dequeued`, 1)
	got, err := webhook{}.Decode(headers("merge_group"), []byte(body))
	want := mergeGroup("destroyed")
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(v1alpha1.GitEventSpec{}, "Body", "HappenedAt")); diff != "" ||
		err != nil {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	started, err := webhook{}.Decode(headers("merge_group"), recorded(t, file))
	if err != nil || !got.ClosesOf(started) || started.ClosesOf(got) || !started.Precedes(got, got.Happened()) ||
		got.EventName() == started.EventName() || got.Subject() != started.Subject() {
		t.Errorf("%v: %+v does not end %+v", err, got, started)
	}
}

func TestDecodeReadsTheWholeMessageForASkipCommand(t *testing.T) {
	body := recorded(t, "push-branch.json")
	for message, want := range map[string]bool{"Fix the pump\\n\\nbody [skip ci]": true, "Fix the pump [Skip CI]": false,
		"Fix [tkn skip]": true, "Fix [skip  ci]": false} {
		changed := strings.ReplaceAll(string(body), `"message": "Fix the pump`, `"message": "`+message+`","x": "`)
		if changed == string(body) {
			t.Fatal("the payload has no such message")
		}
		spec, err := webhook{}.Decode(headers("push"), []byte(changed))
		if err != nil || spec.Commit.SkipCI != want || strings.Contains(spec.Commit.Title, "body") {
			t.Errorf("%q: %+v, %v, want %t", message, spec, err, want)
		}
	}
}

// recordings are deliveries with all the fields GitHub sends.
func recordings(t *testing.T) []providertest.Recorded {
	cases := []struct {
		name, event, file string
		want              *v1alpha1.GitEventSpec
		ignored           string
	}{
		{"a push to a branch", "push", "push-branch.json", pushed("refs/heads/main", shaBefore), ""},
		{"a push of a new branch replaces nothing", "push", "push-new-branch.json", pushed("refs/heads/feature/ü", ""), ""},
		{"a lightweight tag", "push", "push-tag-lightweight.json", pushed("refs/tags/v1.0", ""), ""},
		{"an annotated tag runs on the commit, not on the tag object that after names", "push", "push-tag-annotated.json",
			pushed("refs/tags/v1.1", ""), ""},
		{"a pull request from a fork is its author's, and tells who acted", "pull_request", "pull-opened-fork.json",
			pulled("opened", "https://github.com/dev/app", 2002), ""},
		{"a pull request from a branch", "pull_request", "pull-synchronize-branch.json",
			after(shaBefore, pulled("synchronize", "https://github.com/acme/app", 1001)), ""},
		{"a label that is added is an event of its own type", "pull_request", "pull-labeled.json", labelled(), ""},
		{"a pull request whose fork was deleted", "pull_request", "pull-ready-deleted-fork.json",
			pulled("ready_for_review", "", 0), ""},
		{"a merge group", "merge_group", "merge-group-requested.json", mergeGroup("checks_requested"), ""},
		{"an edited title", "pull_request", "pull-edited.json", nil, `pull_request action "edited" starts nothing`},
		{"a deleted branch", "push", "push-deleted.json", nil, "refs/heads/old was deleted"},
	}
	var out []providertest.Recorded
	for _, c := range cases {
		out = append(out, providertest.Recorded{
			Name: c.name, Delivery: providertest.Delivery{Header: headers(c.event), Body: recorded(t, c.file)}, Want: c.want,
			Ignored: c.ignored,
		})
	}
	return out
}

func TestDecodeRefuses(t *testing.T) {
	const fork, branch, queued = "pull-opened-fork.json", "push-branch.json", "merge-group-requested.json"
	cases := []struct {
		name, event, file, old, new string
		class                       fault.Class
		message                     string
	}{
		{"a ping", "ping", branch, "", "", fault.Ignored, `event "ping" starts nothing`},
		{"a review", "pull_request_review", fork, "", "", fault.Ignored, `event "pull_request_review" starts nothing`},
		{"a push to a note", "push", branch, `"refs/heads/main"`, `"refs/notes/x"`, fault.Ignored,
			"neither a branch nor a tag"},
		{"no pusher", "push", branch, `"pusher"`, `"pusher_"`, fault.Invalid, "pusher"},
		{"no sender", "push", branch, `"sender"`, `"sender_"`, fault.Invalid, "sender"},
		{"no ref", "push", branch, `"ref"`, `"ref_"`, fault.Invalid, "ref"},
		{"a ref that is too long", "push", branch, "refs/heads/main", "refs/heads/" + strings.Repeat("x", 1024),
			fault.Invalid, "ref"},
		{"after is no commit id", "push", branch, `"after": "6113728f`, `"after": "../../xx`, fault.Invalid, "after"},
		{"before is no commit id", "push", branch, `"before": "1481a2de`, `"before": "../../xx`, fault.Invalid, "before"},
		{"no repository", "push", branch, `"repository"`, `"repository_"`, fault.Invalid, "repository"},
		{"an owner that is a path", "push", branch, `"login": "acme"`, `"login": "acme/../x"`, fault.Invalid, "owner.login"},
		{"a page of another repository", "push", branch, `"html_url": "https://github.com/acme/app"`,
			`"html_url": "https://github.com/acme/x"`, fault.Invalid, "html_url"},
		{"a page with a password", "push", branch, `"https://github.com/acme/app"`, `"https://a:b@github.com/acme/app"`,
			fault.Invalid, "html_url"},
		{"two repositories", "push", branch, `"ref"`, `"Repository": {"html_url": "https://github.com/acme/x"}, "ref"`,
			fault.Invalid, "repository twice"},
		{"two pages", "push", branch, `"html_url": "https://github.com/acme/app"`,
			`"html_url": "https://github.com/acme/app", "HTML_URL": "x"`, fault.Invalid, "html_url twice"},
		{"no pull request", "pull_request", fork, `"pull_request"`, `"pull_request_"`, fault.Invalid, "pull_request.number"},
		{"no head commit", "pull_request", fork, `"sha": "6113728f`, `"sha": "zz`, fault.Invalid, "head.sha"},
		{"the base is another repository", "pull_request", fork, `"id": 1001`, `"id": 1`, fault.Invalid, "base.repo"},
		{"no sender of a pull request", "pull_request", fork, `"sender"`, `"sender_"`, fault.Invalid, "sender"},
		{"who acted has no name", "pull_request", fork, `"login": "maintainer"`, `"login": ""`, fault.Invalid,
			"sender.login"},
		{"no head of a merge group", "merge_group", queued, `"head_sha"`, `"x"`, fault.Invalid, "head_sha"},
		{"no base of a merge group", "merge_group", queued, `"base_sha"`, `"x"`, fault.Invalid, "base_sha"},
		{"a merge group outside of the queue", "merge_group", queued, "refs/heads/gh-readonly-queue/main", "refs/heads/main",
			fault.Invalid, "head_ref"},
		{"a merge group for a tag", "merge_group", queued, `"refs/heads/main"`, `"refs/tags/main"`, fault.Invalid, "base_ref"},
		{"no sender of a merge group", "merge_group", queued, `"sender"`, `"x"`, fault.Invalid, "sender"},
		{"another action of a merge group", "merge_group", queued, "checks_requested", "created", fault.Ignored,
			`merge_group action "created" starts nothing`},
		{"an installation that is a text", "push", branch, `"id": 4242`, `"id": "4242"`, fault.Invalid, "installation.id"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			body := recorded(t, c.file)
			if c.old != "" && !bytes.Contains(body, []byte(c.old)) {
				t.Fatalf("the payload has no %s", c.old)
			}
			body = bytes.Replace(body, []byte(c.old), []byte(c.new), 1)
			_, err := webhook{}.Decode(headers(c.event), body)
			if !fault.Is(err, c.class) || !strings.Contains(fault.Of(err).Message, c.message) {
				t.Errorf("got %v, want %s with %q", err, c.class, c.message)
			}
		})
	}
}

func TestDecodeHeaders(t *testing.T) {
	cases := []struct {
		name, header, value, message string
	}{
		{"no delivery id", "X-GitHub-Delivery", "", "X-GitHub-Delivery"},
		{"a delivery id that fits no record", "X-GitHub-Delivery", strings.Repeat("x", 256), "X-GitHub-Delivery"},
		{"form-encoded", "Content-Type", "application/x-www-form-urlencoded", "application/json"},
		{"another Enterprise Server", "X-GitHub-Enterprise-Host", "ghe.example", "X-GitHub-Enterprise-Host"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := webhook{}.Decode(headers("push", c.header, c.value), recorded(t, "push-branch.json"))
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.message) {
				t.Errorf("got %v, want an Invalid fault that names %s", err, c.message)
			}
		})
	}
	spec, err := webhook{}.Decode(headers("push", "X-GitHub-Enterprise-Host", "GitHub.com", "X-Hub-Signature-256",
		"sha256=00",
		"Authorization", "Bearer x", "X-GitHub-Hook-ID", strings.Repeat("ü", 1000)), recorded(t, "push-branch.json"))
	if err != nil {
		t.Fatal(err)
	}
	want := pushed("refs/heads/main", shaBefore).Headers
	want["X-Github-Enterprise-Host"], want["X-Github-Hook-Id"] = "GitHub.com", strings.Repeat("ü", 512)
	if d := cmp.Diff(want, spec.Headers); d != "" {
		t.Errorf("the headers that are kept:\n%s", d)
	}
}
