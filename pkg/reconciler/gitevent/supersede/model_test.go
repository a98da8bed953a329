// SPDX-License-Identifier: Apache-2.0

package supersede

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/gitevents"
)

type model struct {
	r      *rand.Rand
	now    time.Time
	pull   bool
	limit  bool
	ends   bool
	commit []string            // of each push
	at     []time.Time         // when it was pushed
	has    map[string][]string // the pipelines of each commit
	events []*v1alpha1.GitEvent
	// cached returns what a process saw a step ago.
	cached []*v1alpha1.GitEvent
}

func newModel(seed uint64) *model {
	m := &model{
		r: rand.New(rand.NewPCG(seed, 43)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), has: map[string][]string{},
	}
	m.pull, m.limit, m.ends = seed%2 == 0, seed%4 > 1, seed%8 > 3
	for i := range pushes {
		sha := fmt.Sprintf("%040x", i+1)
		if m.r.IntN(4) == 0 && i > 1 && i < pushes-1 { // back to a commit from before
			sha = m.commit[m.r.IntN(i-1)]
		}
		if m.has[sha] == nil {
			m.has[sha] = [][]string{{"build"}, {"docs"}, {"build", "docs"}, {"build", "docs"}}[m.r.IntN(4)]
		}
		m.commit = append(m.commit, sha)
		m.at = append(m.at, m.now)
		m.now = m.now.Add(time.Second) // the clock tells pushes apart
		m.pass(2)
	}
	return m
}

func (m *model) pass(seconds int) {
	m.now = m.now.Add(time.Duration(m.r.IntN(seconds+1)) * time.Second)
}

func (m *model) git(e *v1alpha1.GitEvent) asks {
	return asks{
		tip: func() (string, error) { return m.tip(), nil },
		had: func(sha string) (found []*v1alpha1.GitEvent, err error) {
			for _, other := range m.events {
				if shaOf(other) == sha && other != e {
					found = append(found, other)
				}
			}
			return found, nil
		},
	}
}

func (m *model) tip() string {
	then := m.now.Add(-time.Duration(m.r.IntN(20)) * time.Second)
	sha := m.commit[0]
	for i, at := range m.at {
		if !at.After(then) {
			sha = m.commit[i]
		}
	}
	return sha
}

func (m *model) record(push int) {
	name := fmt.Sprintf("push-%d", push)
	if slices.ContainsFunc(m.events, func(e *v1alpha1.GitEvent) bool { return e.Name == name }) {
		return
	}
	e := m.event(name, m.at[push])
	e.Spec.SHA = m.commit[push]
	if push > 0 {
		e.Spec.Before = m.commit[push-1]
	}
}

func (m *model) event(name string, at time.Time) *v1alpha1.GitEvent {
	e := &v1alpha1.GitEvent{}
	e.Name, e.UID = name, types.UID(name)
	e.Spec.Trigger, e.Spec.Provider, e.Spec.BaseRef = v1alpha1.TriggerPush, "fake", "refs/heads/main"
	if m.pull {
		e.Spec.Trigger, e.Spec.BaseRef, e.Spec.PullRequest = v1alpha1.TriggerPullRequest, "main",
			&v1alpha1.PullRequest{Number: 3}
	}
	happened := metav1.NewTime(at.Truncate(time.Second))
	e.Spec.HappenedAt, e.Spec.ReceivedAt = &happened, metav1.NewTime(m.now)
	m.events = append(m.events, e)
	return e
}

func (m *model) comment() {
	if m.pull {
		id := len(m.events) + 1
		m.event(fmt.Sprintf("comment-%d", id), m.now).Spec.Comment = &v1alpha1.Comment{ID: int64(id)}
	}
}

func (m *model) snapshot() (trimmed []*v1alpha1.GitEvent) {
	for _, e := range m.events {
		if !e.Settled() {
			trimmed = append(trimmed, gitevents.Trim(e))
		}
	}
	return trimmed
}

func (m *model) annotate(e *v1alpha1.GitEvent, from string, c *v1alpha1.Cancellation) {
	name, value, _ := c.CancelsAs(from)
	if e.Annotations == nil {
		e.Annotations = map[string]string{}
	}
	e.Annotations[name] = value
}
