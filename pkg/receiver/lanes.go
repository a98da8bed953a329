// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// lanes keep the deliveries of one Repository that arrive together from being recorded all at once: the API server needs as long for
// all of them, and whatever else it is asked meanwhile takes as long as they do. The zero value is ready.
type lanes struct {
	mu sync.Mutex
	of map[string]*lane
}

type lane struct {
	places chan struct{}
	users  int // who has a place, or waits for one
}

// enter waits for one of the places of a key, then for one of those for whoever is late, for at most laneWait in all: then the API
// server is slow, and more at once do no more harm. Leave must be called once.
func (l *lanes) enter(ctx context.Context, key string, places int) (leave func()) {
	leave, entered := l.wait(ctx, key, places)
	if entered {
		return leave
	}
	leave()
	leave, _ = l.wait(ctx, key+" late", lateLane)
	return leave
}

// wait waits for half of laneWait.
func (l *lanes) wait(ctx context.Context, key string, places int) (leave func(), entered bool) {
	its := l.at(key, places)
	limit := laneWait / 2
	if end, ends := ctx.Deadline(); ends {
		limit = min(limit, time.Until(end)-recordTime)
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case its.places <- struct{}{}:
		return func() {
			<-its.places
			l.left(key, its)
		}, true
	case <-timer.C:
		return func() { l.left(key, its) }, false
	}
}

func (l *lanes) at(key string, places int) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]*lane{}
	}
	its, known := l.of[key]
	if !known {
		its = &lane{places: make(chan struct{}, places)}
		l.of[key] = its
	}
	its.users++
	return its
}

func (l *lanes) left(key string, its *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if its.users--; its.users == 0 {
		delete(l.of, key)
	}
}

// lane waits for a place for a delivery.
func (l *lanes) lane(ctx context.Context, spec *v1alpha1.GitEventSpec, body []byte) (leave func()) {
	repository := spec.Repository.Namespace + "/" + spec.Repository.Name
	switch {
	case len(body) > heavyBytes:
		return l.enter(ctx, spec.Repository.Namespace, largeLane)
	case spec.Trigger == v1alpha1.TriggerPullRequest:
		return l.enter(ctx, repository+" pulls", pullsLane)
	}
	return l.enter(ctx, repository, repositoryLane)
}
