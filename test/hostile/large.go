// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

const (
	// largeBody is a little below GitHub's limit of 25 MB.
	largeBody  = 24_000_000
	largeEvery = 1000 * time.Millisecond
	// foreign is how many PipelineRuns carry our label and were not made by us; each has about a
	// mebibyte.
	foreign = 20
	// place is replaced in each copy of a body: no two deliveries are the same.
	place = "0123456789abcdef"
)

// grown is a push's body with commits and their messages until it has so many bytes.
func grown(body []byte, size int) ([]byte, error) {
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	var commits []any
	for n := 0; size > len(body); n++ {
		random := make([]byte, min(size, 40_000))
		_, _ = rand.Read(random) // it never fails
		message := place + base64.StdEncoding.EncodeToString(random)
		commits = append(commits, map[string]any{"id": fmt.Sprintf("%040x", n), "message": message, "added": []string{"a"},
			"removed": []string{}, "modified": []string{}})
		size -= len(message) + 200
	}
	fields["commits"] = commits
	return json.Marshal(fields)
}

// fresh is a copy of a body that differs in one place.
func fresh(body []byte) []byte {
	var random [len(place) / 2]byte
	_, _ = rand.Read(random[:])
	return bytes.Replace(body, []byte(place), []byte(hex.EncodeToString(random[:])), 1)
}

// largeThings makes large pushes, definitions that read the body, a GitLab whose lists never end,
// and PipelineRuns with our label.
func largeThings(ctx context.Context, s *stage) error {
	reads := pipeline("reads", `pipelinesascode.tekton.dev/on-cel-expression: body.commits.size() == 12345`)
	s.forge.Commit(evil, "main", forge.Change{Files: map[string]string{".tekton/push.yaml": reads}})
	s.gitlab.Commit(project, "main", forge.Change{Files: map[string]string{".tekton/push.yaml": reads}})
	s.hub = s.forge.PushDelivery(forge.PushEvent{
		Repo: evil, Ref: "refs/heads/main", After: s.forge.Branches(evil)["main"],
	})
	s.lab = s.gitlab.PushDelivery(gitlab.PushEvent{Project: project, Ref: "refs/heads/main"})
	var errs [2]error
	s.hub.Body, errs[0] = grown(s.hub.Body, largeBody)
	s.lab.Body, errs[1] = grown(s.lab.Body, largeBody)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	token := s.gitlab.CreateToken(gitlab.NewToken{Project: project}).Value
	if err := s.serveGitLab(ctx, "gitlab", s.gitlab.URL(), s.gitlab.URL()+"/"+project, token); err != nil {
		return err
	}
	next := http.Header{"Content-Type": {"application/json"},
		"Link": {"<" + s.gitlab.URL() + `/api/v4/more?page=2>; rel="next"`}, "X-Next-Page": {"2"}}
	pages := []string{
		"[" + strings.Repeat("{},", 80*mebibyte/3) + "{}]",
		`[{"type":"tree","path":"` + strings.Repeat("x", 7*mebibyte) + `"}]`,
	}
	for n, page := range pages {
		turn := 0
		s.gitlab.Inject(gitlab.Fault{Route: gitlab.RouteTree, Do: forge.Answer(http.StatusOK, next, page),
			Match: func(*http.Request) bool {
				turn++
				return turn%3 == n+1 // and the third is as it should be
			}})
	}
	return s.labelled(ctx)
}

// labelled makes PipelineRuns that look like Plumbline's, in a namespace of their own. They never
// run.
func (s *stage) labelled(ctx context.Context) (err error) {
	if s.foreign, err = s.cluster.CreateNamespace(ctx, "foreign"); err != nil {
		return err
	}
	for n := range foreign {
		run := &pipelinev1.PipelineRun{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint("foreign-", n), Labels: map[string]string{plumbline.EventLabel: fmt.Sprint("event-", n)},
			},
			Spec: pipelinev1.PipelineRunSpec{
				Status: pipelinev1.PipelineRunSpecStatusPending, PipelineRef: &pipelinev1.PipelineRef{Name: "none"},
				Params: pipelinev1.Params{{Name: "large", Value: *pipelinev1.NewStructuredValues(strings.Repeat("x", mebibyte))}},
			},
		}
		if _, err := s.installation.Tekton.TektonV1().PipelineRuns(s.foreign).Create(ctx, run,
			metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating a PipelineRun: %w", err)
		}
	}
	return nil
}

// pushLarge sends large pushes of both services.
func pushLarge(ctx context.Context, s *stage, sent *tally) {
	every(ctx, largeEvery, func(n int) {
		hub, lab := s.hub, s.lab
		var d request
		if n%2 == 0 {
			hub.Body = fresh(hub.Body)
			hub.Header = hub.Header.Clone()
			hub.Header.Set("X-Github-Delivery", fmt.Sprintf("00000000-0000-4000-8000-%012d", n))
			hub.Sign("webhook-secret-of-the-app")
			d = hub
		} else {
			d = again(lab, lab.Body, 8, n)
		}
		status, err := post(ctx, s.receiver.URL, d)
		sent.answered("pushes of 24 MB", status, err)
	})
}

// again returns a delivery of a GitLab with a body that no other delivery has. kind separates the
// attacks.
func again(d gitlab.Delivery, body []byte, kind, n int) gitlab.Delivery {
	d.Body, d.Header = fresh(body), d.Header.Clone()
	d.Header.Set("Idempotency-Key", fmt.Sprintf("00000000-0000-4000-%x000-%012d", kind, n))
	d.Header.Set("X-Gitlab-Event-Uuid", fmt.Sprintf("00000000-0000-4000-%x000-%012d", kind+1, n))
	return d
}

const floodEvery = 50 * time.Millisecond

// withoutToken makes a Repository whose Secret has no token.
func withoutToken(ctx context.Context, s *stage) error {
	s.gitlab.CreateProject("evil/team/flood", gitlab.ProjectOptions{Unprotected: true})
	s.gitlab.AddHook("evil/team/flood", "http://127.0.0.1:1", hookSecret)
	s.gitlab.Commit("evil/team/flood", "main", forge.Change{Message: "change"})
	return s.serveGitLab(ctx, "flood", s.gitlab.URL(), s.gitlab.URL()+"/evil/team/flood", "")
}

// flood sends bodies of nearly a mebibyte that cannot be compressed.
func flood(ctx context.Context, s *stage, sent *tally) {
	d := s.gitlab.PushDelivery(gitlab.PushEvent{Project: "evil/team/flood", Ref: "refs/heads/main"})
	body, err := grown(d.Body, mebibyte-10_000)
	if err != nil {
		sent.add(err.Error())
		return
	}
	every(ctx, floodEvery, func(n int) {
		status, err := post(ctx, s.receiver.URL, again(d, body, 10, n))
		sent.answered("pushes of 1 MB", status, err)
	})
}

const (
	hosts     = 8
	hangEvery = 250 * time.Millisecond
)

// hangingHosts makes Repositories on hosts that accept every connection and never answer.
func hangingHosts(ctx context.Context, s *stage) error {
	s.gitlab.Commit(project, "main", forge.Change{Message: "change"})
	for n := range hosts {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		s.listeners = append(s.listeners, listener)
		go func() {
			for {
				connection, err := listener.Accept()
				if err != nil {
					return // closed
				}
				go func() { _, _ = io.Copy(io.Discard, connection) }()
			}
		}()
		url := "http://" + listener.Addr().String()
		if err := s.serveGitLab(ctx, fmt.Sprint("hangs-", n), url, url+"/"+project, "a-token"); err != nil {
			return err
		}
	}
	return nil
}

// pushToHanging delivers pushes of the hosts that hang.
func pushToHanging(ctx context.Context, s *stage, sent *tally) {
	every(ctx, hangEvery, func(n int) {
		d := s.gitlab.PushDelivery(gitlab.PushEvent{Project: project, Ref: "refs/heads/main"})
		url := "http://" + s.listeners[n%hosts].Addr().String()
		d.Body = bytes.ReplaceAll(d.Body, []byte(s.gitlab.URL()), []byte(url))
		d.Header.Set("X-Gitlab-Instance", url)
		status, err := post(ctx, s.receiver.URL, d)
		sent.answered("pushes", status, err)
	})
}
