// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// The phases of an event. Its first write into the tenant's namespace proves that the plan is recorded.
const (
	planning = iota
	creating
	reporting
	phases
)

// sample is what one event cost.
type sample struct {
	runs  int
	ended [phases]time.Duration // since the delivery was accepted
	git   [phases]map[string]int
	kube  [phases]map[string]int
	event sizes
}

// sizes are in bytes, as JSON.
type sizes struct{ planned, largest, settled, blob int }

// measure delivers one push that starts so many PipelineRuns and waits until its event is settled.
func (s *stage) measure(ctx context.Context, runs int) (sample, error) {
	name := fmt.Sprintf("runs-%d", runs)
	fmt.Printf("a push for %d PipelineRuns\n", runs)
	if err := s.serve(ctx, name); err != nil {
		return sample{}, err
	}
	s.forge.Commit("acme/"+name, "main", forge.Change{Files: pipelines(runs), Message: "pipelines"})
	sha := s.forge.Commit("acme/"+name, "main", forge.Change{Files: services(runs), Message: "services"})
	s.reset()
	requests := len(s.forge.Requests())
	code, body, err := s.forge.Deliver(ctx, s.receiver.URL, s.forge.PushDelivery(forge.PushEvent{Repo: "acme/" + name, Ref: "refs/heads/main"}))
	if err != nil {
		return sample{}, fmt.Errorf("delivering the push: %w", err)
	}
	if code != http.StatusAccepted {
		return sample{}, fmt.Errorf("the delivery was answered %d %s", code, body)
	}
	accepted := time.Now()
	out := sample{runs: runs}
	event, err := s.settled(ctx, sha, &out.event)
	if err != nil {
		return sample{}, err
	}
	out.ended[reporting] = time.Since(accepted)
	if len(event.Status.Runs) != runs {
		return sample{}, fmt.Errorf("%d PipelineRuns were planned, want %d: %+v", len(event.Status.Runs), runs, event.Status.Plan)
	}
	return out, out.count(accepted, name, append(s.receiver.Proxy.Calls(), s.controller.Proxy.Calls()...), s.forge.Requests()[requests:])
}

// settled waits for the end of the event and looks at its size all the time.
func (s *stage) settled(ctx context.Context, sha string, seen *sizes) (event *v1alpha1.GitEvent, err error) {
	events := s.plumbline.Plumbline.PlumblineV1alpha1().GitEvents(system)
	err = until(ctx, "the event of commit "+sha+" is settled", func() (bool, error) {
		if event == nil {
			list, err := events.List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			for i := range list.Items {
				if list.Items[i].Spec.SHA == sha {
					event = &list.Items[i]
				}
			}
			return false, nil
		}
		found, err := events.Get(ctx, event.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		event = found
		return event.Settled(), seen.add(event)
	})
	if err != nil && event != nil {
		return nil, fmt.Errorf("%w: %s", err, waits(event))
	}
	return event, err
}

func (s *sizes) add(event *v1alpha1.GitEvent) error {
	data, err := json.Marshal(event)
	if err != nil {
		return err
	}
	plan := event.Status.Plan
	if plan == nil {
		return nil
	}
	if s.planned == 0 {
		s.planned = len(data)
	}
	s.largest, s.settled = max(s.largest, len(data)), len(data)
	for _, ref := range plan.Blobs {
		s.blob = int(ref.Size)
	}
	return nil
}

// waits says why an event is not settled.
func waits(event *v1alpha1.GitEvent) string {
	text := fmt.Sprintf("GitEvent %s has %d runs", event.Name, len(event.Status.Runs))
	for _, wait := range event.Status.Waits {
		text += fmt.Sprintf("\n  %s waits: %s", wait.Step, wait.Message)
	}
	return text
}

// count divides the calls among the phases by the time of their arrival.
func (s *sample) count(accepted time.Time, namespace string, calls []cluster.Call, requests []forge.Request) error {
	first, last := creates(calls, namespace)
	if first.IsZero() {
		return fmt.Errorf("no PipelineRun was created in namespace %s", namespace)
	}
	s.ended[planning], s.ended[creating] = first.Sub(accepted), last.Sub(accepted)
	for phase := range phases {
		s.git[phase], s.kube[phase] = map[string]int{}, map[string]int{}
	}
	phaseAt := func(at time.Time) int {
		switch {
		case at.Before(first):
			return planning
		case at.After(last):
			return reporting
		}
		return creating
	}
	for _, call := range calls {
		if call.Resource == "leases" || call.Resource == "" || call.Verb == "watch" { // they go on whatever happens
			continue
		}
		name := call.Verb + " " + call.Resource
		if call.Subresource != "" {
			name += "/" + call.Subresource
		}
		s.kube[phaseAt(call.Time)][name]++
	}
	for _, request := range requests {
		s.git[phaseAt(request.Time)][request.Route]++
	}
	return nil
}

// creates is when the first object was created in the namespace and when the last PipelineRun was.
func creates(calls []cluster.Call, namespace string) (first, last time.Time) {
	for _, call := range calls {
		if call.Verb != "create" || call.Namespace != namespace || (call.Resource != "secrets" && call.Resource != "pipelineruns") {
			continue
		}
		if first.IsZero() || call.Time.Before(first) {
			first = call.Time
		}
		if call.Resource == "pipelineruns" && call.Status == http.StatusCreated && call.Time.After(last) {
			last = call.Time
		}
	}
	return first, last
}
