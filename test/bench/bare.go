// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// bareRun is the PipelineRun that Plumbline makes of a push, under another name. The label that
// names its event is one that Plumbline does not know, of the same length.
func (s *stage) bareRun(name string) (*pipelinev1.PipelineRun, error) {
	s.observer.mu.Lock()
	defer s.observer.mu.Unlock()
	if s.observer.sample == nil {
		return nil, errors.New("no PipelineRun of Plumbline was seen")
	}
	run := &pipelinev1.PipelineRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: bare, Name: name, Labels: map[string]string{}, Annotations: map[string]string{},
		},
		Spec: *s.observer.sample.Spec.DeepCopy(),
	}
	for key, value := range s.observer.sample.Labels {
		run.Labels[strings.Replace(key, plumbline.GroupName, "bareclient.dev", 1)] = value
	}
	for key, value := range s.observer.sample.Annotations {
		run.Annotations[strings.Replace(key, plumbline.GroupName, "bareclient.dev", 1)] = value
	}
	run.Labels[pipelinesascode.SHA] = name
	return run, nil
}

// bareCreate makes one and notes when the API server answered.
func (s *stage) bareCreate(ctx context.Context, e *event, due time.Time) error {
	run, err := s.bareRun(e.id)
	if err != nil {
		return err
	}
	if _, err := s.tekton.TektonV1().PipelineRuns(bare).Create(ctx, run, metav1.CreateOptions{}); err != nil {
		return err
	}
	answered := time.Now()
	s.observer.note(e, func(e *event) { e.due, e.answered = due, answered })
	return nil
}

// bareFigures are what the bare client sees at a rate: from when a create was due until a watch
// shows its PipelineRun, and until one durable create of a delivery's size is answered; and the CPU
// time of each process for one PipelineRun.
type bareFigures struct {
	run, create []time.Duration
	cpu         map[string]time.Duration
}

// bareLoad creates PipelineRuns at a fixed rate, and then ConfigMaps.
func (s *stage) bareLoad(ctx context.Context, rate float64, n int) (out bareFigures, err error) {
	events := make([]*event, n)
	for i := range events {
		events[i] = &event{id: fmt.Sprintf("bare-%.0f-%d", rate, i)}
	}
	s.observer.expect(events...)
	var mu sync.Mutex
	failed := func(e error) {
		mu.Lock()
		defer mu.Unlock()
		err = errors.Join(err, e)
	}
	before, err := s.use()
	if err != nil {
		return out, err
	}
	installation.OpenLoop(ctx, each(rate), n, func(i int, due time.Time) { failed(s.bareCreate(ctx, events[i], due)) })
	failed(s.bareEnded(ctx, events))
	after, used := s.use()
	failed(used)
	out.cpu = map[string]time.Duration{}
	for process := range after.cpu {
		out.cpu[process] = (after.cpu[process] - before.cpu[process]) / time.Duration(n)
	}
	body := string(s.prepare(1, s.repos[0])[0].delivery.Body)
	installation.OpenLoop(ctx, each(rate), n, func(i int, due time.Time) {
		_, err := s.kube.CoreV1().ConfigMaps(bare).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: events[i].id}, Data: map[string]string{"body": body},
		}, metav1.CreateOptions{})
		took := time.Since(due)
		failed(err)
		mu.Lock()
		defer mu.Unlock()
		out.create = append(out.create, took)
	})
	for _, e := range events {
		if !e.created.IsZero() {
			out.run = append(out.run, e.created.Sub(e.due))
		}
	}
	return out, err
}

// bareEnded waits until Tekton has ended the PipelineRuns, so that it does nothing any more for
// them.
func (s *stage) bareEnded(ctx context.Context, events []*event) error {
	ctx, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	return cluster.Poll(ctx, pollEvery, func() error {
		s.observer.mu.Lock()
		defer s.observer.mu.Unlock()
		for _, e := range events {
			if e.ended.IsZero() {
				return fmt.Errorf("PipelineRun %s has not ended", e.id)
			}
		}
		return nil
	})
}

// bareSustained is how many PipelineRuns a second so many writers create, each the next one as soon
// as the last is answered.
func (s *stage) bareSustained(ctx context.Context, writers int, during time.Duration) (float64, error) {
	var number, created, failed atomic.Int64
	begin := time.Now()
	closedLoop(ctx, writers, during, func(ctx context.Context) bool {
		run, err := s.bareRun(fmt.Sprintf("sustained-%d-%d", writers, number.Add(1)))
		if err == nil {
			_, err = s.tekton.TektonV1().PipelineRuns(bare).Create(ctx, run, metav1.CreateOptions{})
		}
		switch {
		case err == nil:
			created.Add(1)
		case ctx.Err() == nil:
			failed.Add(1)
		}
		return err == nil
	})
	took := time.Since(begin)
	if failed.Load() > 0 {
		return 0, fmt.Errorf("%d of %d writers could not create their PipelineRuns", failed.Load(), writers)
	}
	return float64(created.Load()) / took.Seconds(), ctx.Err()
}
