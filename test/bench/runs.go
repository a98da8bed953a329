// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// Delays stand for the distance that loopback does not have.
type Delays struct{ Git, Create time.Duration }

// phases are the calls to plan, to create and to report an event. Its first write into the tenant's
// namespace proves that the plan is recorded.
type phases [3]map[string]int

func (p *phases) count(at time.Time, what string, planned, created time.Time) {
	phase := 1
	if at.Before(planned) {
		phase = 0
	} else if at.After(created) {
		phase = 2
	}
	if p[phase] == nil {
		p[phase] = map[string]int{}
	}
	p[phase][what]++
}

// costs measures one event for each number of PipelineRuns: how long it takes, which calls are
// made, and how large its GitEvent becomes. The pods of its runs are played.
func costs(numbers []int, slow Delays) play {
	return func(ctx context.Context, r *room, out *Section) error {
		s, err := r.openQuickly(ctx, setting{installations: 1, createDelay: slow.Create})
		if err != nil {
			return err
		}
		if slow.Git > 0 {
			s.forge.Inject(forge.Fault{Do: forge.Delay(slow.Git)})
		}
		for _, runs := range numbers {
			if err := s.cost(ctx, runs, out); err != nil {
				return fmt.Errorf("%d PipelineRuns: %w", runs, err)
			}
		}
		return nil
	}
}

// cost delivers one push that starts so many PipelineRuns and waits until its event is settled.
func (s *stage) cost(ctx context.Context, runs int, out *Section) error {
	owner := fmt.Sprintf("runs-%d", runs)
	if err := s.serve(ctx, owner); err != nil {
		return err
	}
	if err := s.claimed(ctx, len(s.repos)); err != nil {
		return err
	}
	repo := owner + "/app"
	s.forge.Commit(repo, "main", forge.Change{Files: pipelines(runs), Orphan: true})
	sha := s.forge.Commit(repo, "main", forge.Change{Files: services(runs)})
	before, err := s.use()
	if err != nil {
		return err
	}
	asked := len(s.forge.Requests())
	push := s.forge.PushDelivery(forge.PushEvent{Repo: repo, Ref: "refs/heads/main"})
	if err := s.accepts(ctx, push); err != nil {
		return err
	}
	accepted, name := time.Now(), fmt.Sprintf("%d PipelineRuns: ", runs)
	event, err := s.grows(ctx, sha, name, out)
	if err != nil {
		return err
	}
	over := time.Since(accepted)
	if len(event.Status.Runs) != runs {
		return fmt.Errorf("%d PipelineRuns were planned: %+v", len(event.Status.Runs), event.Status.Plan)
	}
	after, err := s.use()
	if err != nil {
		return err
	}
	var calls []kubeCall
	if err := s.kubeCalls(before.audit, after.audit, func(c kubeCall) { calls = append(calls, c) }); err != nil {
		return err
	}
	planned, created := creates(calls, owner)
	out.add(name+"the plan is recorded after", "s", planned.Sub(accepted).Seconds(), 0)
	out.add(name+"the last PipelineRun is created after", "s", created.Sub(accepted).Seconds(), 0)
	out.add(name+"every run is over and reported after", "s", over.Seconds(), 0)
	var kube, git phases
	for _, c := range calls {
		kube.count(c.At, c.kind(), planned, created)
	}
	for _, request := range s.forge.Requests()[asked:] {
		git.count(request.Time, request.Route, planned, created)
	}
	for phase, to := range []string{"plan", "create", "report and settle"} {
		out.calls(name+"Git service calls to "+to, git[phase], 1)
		out.calls(name+"Kubernetes calls to "+to, kube[phase], 1)
	}
	return nil
}

// accepts delivers and requires that the receiver accepts it.
func (s *stage) accepts(ctx context.Context, d forge.Delivery) error {
	code, body, err := s.forge.Deliver(ctx, s.receiver.URL, d)
	if err != nil || code != http.StatusAccepted {
		return fmt.Errorf("the delivery was answered %d %s: %w", code, body, err)
	}
	return nil
}

// grows waits for the end of the event and looks at its size all the time.
func (s *stage) grows(
	ctx context.Context, sha, name string, out *Section,
) (event *v1alpha1.GitEvent, err error) {
	var planned, largest, settled, blob int
	events := s.installation.Plumbline.PlumblineV1alpha1().GitEvents(system)
	err = eventually(ctx, "the event of commit "+sha+" is settled", func() error {
		list, err := events.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if event = &list.Items[i]; event.Spec.SHA != sha || event.Status.Plan == nil {
				continue
			}
			data, err := json.Marshal(event)
			if planned == 0 {
				planned = len(data)
			}
			largest, settled = max(largest, len(data)), len(data)
			for _, ref := range event.Status.Plan.Blobs {
				blob = int(ref.Size)
			}
			if err == nil && !event.Settled() {
				err = fmt.Errorf("GitEvent %s has %d runs and waits: %v", event.Name, len(event.Status.Runs), event.Status.Waits)
			}
			return err
		}
		return errors.New("it has no plan")
	})
	out.add(name+"GitEvent once planned", "bytes", float64(planned), 0)
	out.add(name+"GitEvent at its largest", "bytes", float64(largest), 0)
	out.add(name+"GitEvent settled", "bytes", float64(settled), 0)
	out.add(name+"planned PipelineRuns, uncompressed", "bytes", float64(blob), 0)
	return event, err
}

// creates is when the first object was created in the namespace and when the last PipelineRun was.
func creates(calls []kubeCall, namespace string) (first, last time.Time) {
	for _, c := range calls {
		if c.Verb != "create" || c.Ref.Namespace != namespace ||
			(c.Ref.Resource != "secrets" && c.Ref.Resource != "pipelineruns") {
			continue
		}
		if first.IsZero() || c.At.Before(first) {
			first = c.At
		}
		if c.Ref.Resource == "pipelineruns" && c.Answer.Code == http.StatusCreated && c.At.After(last) {
			last = c.At
		}
	}
	return first, last
}

// task is what every PipelineRun refers to.
const task = `apiVersion: tekton.dev/v1
kind: Task
metadata:
  name: build
spec:
  params:
    - name: revision
  steps:
    - name: build
      image: busybox
      script: echo building $(params.revision)
`

// pipelines is a .tekton with so many PipelineRuns, each for one service of the repository.
func pipelines(runs int) map[string]string {
	files := map[string]string{"tasks/build.yaml": task}
	for i := range runs {
		files[fmt.Sprintf(".tekton/service-%03d.yaml", i)] = fmt.Sprintf(`apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  generateName: service-%03[1]d-
  annotations:
    pipelinesascode.tekton.dev/on-event: "[push]"
    pipelinesascode.tekton.dev/on-target-branch: "[main]"
    pipelinesascode.tekton.dev/on-path-change: "[services/%03[1]d/**, go.mod]"
    pipelinesascode.tekton.dev/task: "tasks/build.yaml"
spec:
  params:
    - name: url
      value: "{{ repo_url }}"
    - name: branch
      value: "{{ source_branch }}"
    - name: revision
      value: "{{ revision }}"
  pipelineSpec:
    params:
      - name: revision
    tasks:
      - name: build
        taskRef:
          name: build
        params:
          - name: revision
            value: $(params.revision)
`, i)
	}
	return files
}

// services is a change to each of them.
func services(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("services/%03d/main.go", i)] = "package main\n"
	}
	return files
}
