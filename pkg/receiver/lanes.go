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
	mu   sync.Mutex
	of   map[laneKey]*lane
	held int // by the bodies of those who wait, or have waited
}

// laneKey names a lane that has so many places.
type laneKey struct {
	of     string
	places int
}

type lane struct {
	places chan struct{}
	users  int // who has a place, or waits for one
}

// laneOf is the lane of a delivery.
func laneOf(spec *v1alpha1.GitEventSpec, body []byte) laneKey {
	repository, pull := spec.Repository.Namespace+"/"+spec.Repository.Name, spec.Trigger == v1alpha1.TriggerPullRequest
	switch {
	case pull && len(body) > heavyBytes: // a stranger's description may be that long
		return laneKey{spec.Repository.Namespace + " pulls", largeLane}
	case len(body) > heavyBytes:
		return laneKey{spec.Repository.Namespace, largeLane}
	case pull:
		return laneKey{repository + " pulls", pullsLane}
	}
	return laneKey{repository, repositoryLane}
}

// enter takes one of a lane's places. When there is none it calls waits, and waits for one of them and then for one of those for
// whoever is late, for at most laneWait in all: then the API server is slow, and more at once do no more harm. Leave must be called
// once. Size is of what the delivery holds; of one that waited it counts until then.
func (l *lanes) enter(ctx context.Context, key laneKey, size int, waits func()) (leave func()) {
	if leave = l.wait(key, 0); leave != nil {
		return leave
	}
	if !l.hold(size) {
		return func() {}
	}
	waits()
	for _, next := range []struct {
		lane  laneKey
		limit time.Duration
	}{{key, laneWait - lateWait}, {laneKey{key.of + " late", lateLane}, lateWait}} {
		limit := next.limit
		if end, ends := ctx.Deadline(); ends {
			limit = min(limit, time.Until(end)-slotWait-recordTime)
		}
		if place := l.wait(next.lane, limit); place != nil {
			return func() { place(); l.hold(-size) }
		}
	}
	return func() { l.hold(-size) }
}

// hold counts what is held by those who wait, or have waited; false is that nobody more may wait.
func (l *lanes) hold(size int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if size > 0 && l.held+size > laneBytes {
		return false
	}
	l.held += size
	return true
}

// wait waits for a place; nil is that there was none in time.
func (l *lanes) wait(key laneKey, limit time.Duration) (leave func()) {
	its := l.at(key)
	leave = func() {
		<-its.places
		l.left(key, its)
	}
	select {
	case its.places <- struct{}{}:
		return leave
	default:
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case its.places <- struct{}{}:
		return leave
	case <-timer.C:
		l.left(key, its)
		return nil
	}
}

func (l *lanes) at(key laneKey) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[laneKey]*lane{}
	}
	its, known := l.of[key]
	if !known {
		its = &lane{places: make(chan struct{}, key.places)}
		l.of[key] = its
	}
	its.users++
	return its
}

func (l *lanes) left(key laneKey, its *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if its.users--; its.users == 0 {
		delete(l.of, key)
	}
}
