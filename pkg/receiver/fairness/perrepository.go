// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

const (
	// repositoryLane is how many deliveries of one Repository are recorded at once, pullsLane how
	// many of its pull requests, which strangers may cause, and largeLane how many over heavyBytes
	// of one namespace, and as many of its pull requests. An API server that takes 10 ms for each
	// records 100 pull requests in a second. Who has waited for laneWait but lateWait is one of
	// lateLane, and who has waited for all of it goes on all the same. Nobody waits for a lane when
	// only PlaceWait and recordTime are left of its time: a create that is slow needs them. Whoever
	// waits holds no place that others need; all who wait, or have waited, together hold laneBytes
	// at most, and who comes then does not wait. Nor does a delivery that has a slot for its large
	// body.
	repositoryLane = 4
	pullsLane      = 1
	largeLane      = 1
	lateLane       = 3
	laneWait       = 3 * time.Second
	lateWait       = 500 * time.Millisecond
	recordTime     = 2 * time.Second
	laneBytes      = 32 << 20
)

// Lanes keep the deliveries of one Repository that arrive together from being recorded all at once:
// the API server needs as long for all of them, and whatever else it is asked meanwhile takes as
// long as they do. The zero value is ready.
type Lanes struct {
	mu   sync.Mutex
	of   map[Lane]*lane
	held int // by the bodies of those who wait, or have waited
}

// Lane names a lane that has so many places.
type Lane struct {
	of     string
	places int
}

type lane struct {
	places chan struct{}
	users  int // who has a place, or waits for one
}

// LaneOf is the lane of a delivery.
func LaneOf(spec *v1alpha1.GitEventSpec, body []byte) Lane {
	repository, pull := spec.Repository.Namespace+"/"+spec.Repository.Name, spec.Trigger == v1alpha1.TriggerPullRequest
	switch {
	case pull && len(body) > heavyBytes: // a stranger's description may be that long
		return Lane{spec.Repository.Namespace + " pulls", largeLane}
	case len(body) > heavyBytes:
		return Lane{spec.Repository.Namespace, largeLane}
	case pull:
		return Lane{repository + " pulls", pullsLane}
	}
	return Lane{repository, repositoryLane}
}

// Enter takes one of a lane's places. When there is none it calls waits, and waits for one of them
// and then for one of those for whoever is late, for at most laneWait in all: then the API server
// is slow, and more at once do no more harm. leave must be called once. Size is of what the
// delivery holds; of one that waited it counts until then.
func (l *Lanes) Enter(ctx context.Context, key Lane, size int, waits func()) (leave func()) {
	if leave = l.wait(key, 0); leave != nil {
		return leave
	}
	if !l.hold(size) {
		return func() {}
	}
	waits()
	for _, next := range []struct {
		lane  Lane
		limit time.Duration
	}{{key, laneWait - lateWait}, {Lane{key.of + " late", lateLane}, lateWait}} {
		limit := next.limit
		if end, ends := ctx.Deadline(); ends {
			limit = min(limit, time.Until(end)-PlaceWait-recordTime)
		}
		if place := l.wait(next.lane, limit); place != nil {
			return func() { place(); l.hold(-size) }
		}
	}
	return func() { l.hold(-size) }
}

// Held is the bytes of those who wait, or have waited.
func (l *Lanes) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// hold counts what is held by those who wait, or have waited; false is that nobody more may wait.
func (l *Lanes) hold(size int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if size > 0 && l.held+size > laneBytes {
		return false
	}
	l.held += size
	return true
}

// wait waits for a place; nil is that there was none in time.
func (l *Lanes) wait(key Lane, limit time.Duration) (leave func()) {
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

func (l *Lanes) at(key Lane) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[Lane]*lane{}
	}
	its, known := l.of[key]
	if !known {
		its = &lane{places: make(chan struct{}, key.places)}
		l.of[key] = its
	}
	its.users++
	return its
}

func (l *Lanes) left(key Lane, its *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if its.users--; its.users == 0 {
		delete(l.of, key)
	}
}
