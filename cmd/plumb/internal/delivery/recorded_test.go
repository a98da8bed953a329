// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/provider/github"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab"
)

// githubPage is what GitHub's page of recent deliveries shows.
const githubPage = `Request URL: https://ci.example.com/
Request method: POST
Accept: */*
Content-Type: application/json
User-Agent: GitHub-Hookshot/1234567
X-GitHub-Delivery: 72d3162e-cc78-11e3-81ab-4c9367dc0958
X-GitHub-Event: push
X-GitHub-Hook-ID: 292430182
X-GitHub-Hook-Installation-Target-ID: 79929171
X-GitHub-Hook-Installation-Target-Type: integration
X-Hub-Signature-256: sha256=d57c68ca6f92289e6987922ff26938930f6e66a2d161ef06abdf1859230aa23c
`

const gitlabObject = `{"Content-Type": "application/json", "X-Gitlab-Event": "Push Hook", "Idempotency-Key": ["72d3162e"], "X-Gitlab-Token": "s3cret"}`

func TestRecorded(t *testing.T) {
	push, gitlabPush := sample(t, github.Name, "push", "push-branch.json").Body,
		sample(t, gitlab.Name, "Push Hook", "push-branch.json").Body
	for name, test := range map[string]struct {
		payload           []byte
		headers, key      string
		wantKey, wantType string
	}{
		"GitHub's page": {push, githubPage, "", "72d3162e-cc78-11e3-81ab-4c9367dc0958", "push"},
		"with Windows' line ends": {
			push, "\ufeff" + strings.ReplaceAll(githubPage, "\n", "\r\n"), "", "72d3162e-cc78-11e3-81ab-4c9367dc0958", "push",
		},
		"a JSON object":          {gitlabPush, gitlabObject, "", "72d3162e", "push"},
		"another key":            {push, githubPage, "mine", "mine", "push"},
		"another key for GitLab": {gitlabPush, gitlabObject, "mine", "mine", "push"},
		"GitLab's without a key": {gitlabPush, "X-Gitlab-Event: Push Hook", "", "sha256:", "push"},
		"the name's case is the same": {push, strings.ToLower(githubPage[strings.Index(githubPage, "Accept"):]), "",
			"72d3162e-cc78-11e3-81ab-4c9367dc0958", "push"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Recorded(test.payload, []byte(test.headers), test.key)
			if err != nil {
				t.Fatal(err)
			}
			event, err := d.Read()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(event.Spec.DeliveryKey, test.wantKey) || event.Spec.EventType != test.wantType ||
				!d.Recorded || event.Foreign {
				t.Errorf("got %+v, want key %s and type %s", event.Spec, test.wantKey, test.wantType)
			}
			for header, value := range event.Spec.Headers {
				if strings.Contains(value, "s3cret") || strings.HasPrefix(value, "sha256=") {
					t.Errorf("the event keeps %s: %s", header, value)
				}
			}
		})
	}
}

func TestRecordedRefuses(t *testing.T) {
	push, gitlabPush := string(sample(t, github.Name, "push", "push-branch.json").Body),
		string(sample(t, gitlab.Name, "Push Hook", "push-branch.json").Body)
	for name, test := range map[string]struct{ payload, headers, want string }{
		"an empty payload": {" \n", githubPage, "the payload is empty: copy it"},
		"empty headers":    {push, "\n", "the headers are empty: copy them"},
		"a payload that is cut in half": {
			push[:len(push)/2], githubPage, "the payload is not JSON: is it complete?",
		},
		"a payload that is none": {"hello", githubPage, "the payload is not JSON"},
		"headers that are cut in half": {
			push, gitlabObject[:40], "start with { but are not a JSON object: copy all of them",
		},
		"headers of another service": {
			push, "X-Gitea-Event: push\nX-Gitea-Event-Type: push\nX-GitHub-Event: push",
			"not from a Git service that Plumbline serves: GitHub's have X-GitHub-Event",
		},
		"headers of a browser":         {push, "Accept: */*", "not from a Git service that Plumbline serves"},
		"a payload of another service": {gitlabPush, githubPage, "not those of one delivery of GitHub"},
		"the other way round":          {push, gitlabObject, "not those of one delivery of GitLab"},
		"a payload of another event": {
			push, strings.Replace(githubPage, "Event: push", "Event: pull_request", 1), "",
		},
		"headers that are no lines of headers": {
			push, "X-GitHub-Event: push\nhello", `line 2 of the headers is not like "X-GitHub-Event: push"`,
		},
		"payload and headers in each other's place": {githubPage, push, "is neither a text nor a list of texts"},
		"no key": {push, "X-GitHub-Event: push",
			"the headers lack X-GitHub-Delivery, the key of the delivery: copy it too, or make one up with --delivery"},
		"a header of another type": {push, `{"X-GitHub-Event": 1}`, "the header X-GitHub-Event is neither a text nor a list"},
		"several headers of another type": {
			push, `{"H": 1, "G": 1, "F": 1, "E": 1, "D": 1, "C": 1, "B": 1, "A": 1}`, "the header A is neither",
		},
		"a form": {
			"payload=%7B%7D", "X-GitHub-Event: push\nX-GitHub-Delivery: 1\nContent-Type: application/x-www-form-urlencoded",
			"set the webhook's content type to application/json",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Recorded([]byte(test.payload), []byte(test.headers), "")
			var event Event
			if err == nil {
				event, err = d.Read()
			}
			if test.want == "" {
				if err != nil || event.Ignored == "" {
					t.Errorf("got %+v, %v, want that it is ignored", event, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a sentence with %q", err, test.want)
			}
		})
	}
}

func TestForeign(t *testing.T) {
	d := sample(t, github.Name, "push", "push-branch.json")
	d.Header.Del("X-GitHub-Hook-Installation-Target-Type")
	d.Body = []byte(strings.ReplaceAll(string(d.Body), `"installation"`, `"no_installation"`))
	if event, err := d.Read(); err != nil || !event.Foreign {
		t.Errorf("got %+v, %v, want that it is not the App's", event, err)
	}
}

func TestFor(t *testing.T) {
	for _, test := range []struct{ named, host, want string }{
		{"", "github.com", github.Name}, {"", "gitlab.com", gitlab.Name}, {"", "GitLab.example.com", gitlab.Name},
		{"", "git.example.com", github.Name},
		{"gitlab", "git.example.com", gitlab.Name}, {"github", "gitlab.example.com", github.Name},
		{"gitea", "git.example.com", ""},
	} {
		got, err := For(test.named, test.host)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%q at %s is %q, %v, want %q", test.named, test.host, got, err, test.want)
		}
	}
}
