// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	tektonclient "github.com/tektoncd/pipeline/pkg/client/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

const (
	appID = 7
	// system is Plumbline's namespace, bare that of the bare client's PipelineRuns.
	system = "plumbline"
	bare   = "bare"
	// ready bounds what a start waits for.
	ready = 15 * time.Minute
	// pollEvery is how often it is looked whether something waited for has happened. Nothing that
	// is measured depends on it.
	pollEvery = 50 * time.Millisecond
	// unlimited keeps the budgets of open events out of what is measured.
	unlimited = "200000"
)

// pipeline is what each repository has in .tekton. Its only task is skipped: Tekton's controller
// ends the PipelineRun as soon as it sees it, without pods, whose speed is not what is measured.
const pipeline = `apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: build
  annotations:
    pipelinesascode.tekton.dev/on-target-branch: "[main]"
    pipelinesascode.tekton.dev/on-event: "[push]"
spec:
  params: [{name: revision, value: "{{ revision }}"}]
  pipelineSpec:
    params: [{name: revision}]
    tasks:
      - name: build
        when: [{input: "never", operator: in, values: ["now"]}]
        taskSpec:
          steps: [{name: build, image: busybox, script: exit 0}]
`

// stage is Plumbline with one receiver and one controller, a GitHub with some installations of its
// App, each with one repository whose Repository has a namespace of its own, and a bare client.
type stage struct {
	cluster              *cluster.Cluster
	forge                *forge.GitHub
	installation         *installation.Installation
	receiver, controller *installation.Process
	observer             *observer
	repos                []string // owner/name
	tekton               tektonclient.Interface
	kube                 kubernetes.Interface // both without a limit of their own
	stop                 context.CancelFunc
}

// setting is what a section asks of its stage.
type setting struct {
	installations int
	config        [][3]string
	receiverFlags []string
	flags         []string // of the controller
	// createDelay is how much longer the API server takes for each PipelineRun of the controller.
	createDelay time.Duration
}

// open starts everything and lets every repository have a push. What it started is in the stage
// even when it fails.
func open(ctx context.Context, c *cluster.Cluster, programs installation.Programs, want setting) (*stage, error) {
	s := &stage{cluster: c, observer: newObserver()}
	ctx, s.stop = context.WithCancel(ctx)
	s.forge = forge.New(forge.Options{RateLimit: 1 << 30, OnWrite: s.observer.write})
	if err := s.forge.Start(); err != nil {
		return s, err
	}
	app := s.forge.CreateApp(appID, "plumbline", "", "webhook-secret-of-the-bench")
	config := append([][3]string{
		{"plumbline", "open-events-cap", unlimited}, {"plumbline", "open-payloads-mebibytes", "8192"},
		{"plumbline", "settled-cap", "1000000"},
	}, want.config...)
	var err error
	s.installation, err = installation.New(ctx, installation.Options{
		Cluster: c, Forge: s.forge, App: app, Programs: programs, Namespace: system, Config: config,
	})
	if err != nil {
		return s, err
	}
	if err := s.bareClient(ctx); err != nil {
		return s, err
	}
	for i := range want.installations {
		if err := s.serve(ctx, fmt.Sprintf("org-%02d", i)); err != nil {
			return s, err
		}
	}
	s.receiver, s.controller, err = s.installation.Pair(ctx, want.createDelay > 0, want.receiverFlags, want.flags)
	if err != nil {
		return s, err
	}
	if want.createDelay > 0 {
		created := func(call cluster.Call) bool { return call.Is("create", "pipelineruns") }
		s.controller.Proxy.Add(cluster.Rule{Match: created, Do: cluster.Delay(want.createDelay)})
	}
	if err := s.claimed(ctx, want.installations); err != nil {
		return s, err
	}
	return s, s.warm(ctx)
}

func (s *stage) bareClient(ctx context.Context) (err error) {
	config := s.cluster.RESTConfig()
	if s.tekton, err = tektonclient.NewForConfig(config); err != nil {
		return err
	}
	if s.kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if err := s.cluster.MakeNamespace(ctx, bare); err != nil {
		return err
	}
	return s.observer.watch(ctx, s.tekton)
}

// serve makes an installation of the App on a repository of its own, and its Repository.
func (s *stage) serve(ctx context.Context, owner string) error {
	repo := s.forge.CreateRepo(owner, "app", forge.RepoOptions{})
	s.forge.Install(appID, owner, repo.FullName)
	s.forge.Commit(repo.FullName, "main", forge.Change{Files: map[string]string{".tekton/build.yaml": pipeline}})
	s.repos = append(s.repos, repo.FullName)
	if err := s.cluster.MakeNamespace(ctx, owner); err != nil {
		return err
	}
	_, err := s.installation.Serve(ctx, owner, "app", pacv1alpha1.RepositorySpec{URL: repo.HTMLURL})
	return err
}

// claimed waits until so many Repositories own their URLs.
func (s *stage) claimed(ctx context.Context, want int) error {
	claims := s.installation.Plumbline.PlumblineV1alpha1().RepositoryClaims(system)
	return eventually(ctx, "all Repositories own their URLs", func() error {
		page, err := claims.List(ctx, metav1.ListOptions{Limit: 1}) // the server counts what is not on the page
		if err != nil {
			return err
		}
		got := len(page.Items)
		if page.RemainingItemCount != nil {
			got += int(*page.RemainingItemCount)
		}
		if got < want {
			return fmt.Errorf("%d of %d", got, want)
		}
		return nil
	})
}

// warm lets every repository have a push: it fills caches and opens connections.
func (s *stage) warm(ctx context.Context) error {
	const rate = 10
	events := s.prepare(len(s.repos), s.repos...)
	installation.OpenLoop(ctx, each(rate), len(events), func(i int, due time.Time) { s.push(ctx, events[i], due) })
	if err := s.finish(ctx, ready, events); err != nil {
		return fmt.Errorf("the first push of each repository: %w", err)
	}
	return nil
}

// prepare makes pushes to the repositories in turn; none is delivered yet.
func (s *stage) prepare(n int, repos ...string) []*event {
	events := make([]*event, n)
	for i := range events {
		repo := repos[i%len(repos)]
		sha := s.forge.Commit(repo, "main", forge.Change{Message: fmt.Sprintf("change %d", i)})
		events[i] = &event{
			id: sha, repo: repo, delivery: s.forge.PushDelivery(forge.PushEvent{Repo: repo, Ref: "refs/heads/main", After: sha}),
		}
	}
	s.observer.expect(events...)
	return events
}

// push delivers one, which had to begin at due, and returns the answer's code.
func (s *stage) push(ctx context.Context, e *event, due time.Time) int {
	code, _, _ := s.forge.Deliver(ctx, s.receiver.URL, e.delivery) // a delivery without an answer has no code
	answered := time.Now()
	s.observer.note(e, func(e *event) { e.due, e.code, e.answered = due, code, answered })
	return code
}

// finish waits until all accepted events have their final checks.
func (s *stage) finish(ctx context.Context, limit time.Duration, events []*event) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return cluster.Poll(ctx, pollEvery, func() error {
		s.observer.mu.Lock()
		defer s.observer.mu.Unlock()
		open, refused := 0, 0
		for _, e := range events {
			if e.code != http.StatusAccepted {
				refused++
			} else if e.final.IsZero() {
				open++
			}
		}
		if open > 0 || refused == len(events) {
			return fmt.Errorf("%d of %d pushes have no final check, %d were not accepted", open, len(events), refused)
		}
		return nil
	})
}

// settled waits until nothing is left to do for any event: tokens are revoked and payloads deleted
// after the final checks.
func (s *stage) settled(ctx context.Context) error {
	events := s.installation.Plumbline.PlumblineV1alpha1().GitEvents(system)
	return eventually(ctx, "all events are settled", func() error {
		open, err := events.List(ctx, metav1.ListOptions{FieldSelector: v1alpha1.OpenEvents, Limit: 1})
		if err == nil && len(open.Items) > 0 {
			err = fmt.Errorf("%s is open", open.Items[0].Name)
		}
		return err
	})
}

// close ends the processes and the Git service; the rest ends with the cluster.
func (s *stage) close() error {
	s.stop()
	return errors.Join(s.installation.Close(), s.forge.Close())
}

func eventually(ctx context.Context, what string, done func() error) error {
	ctx, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	if err := cluster.Poll(ctx, pollEvery, done); err != nil {
		return fmt.Errorf("waiting: %s: %w", what, err)
	}
	return nil
}
