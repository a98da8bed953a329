// SPDX-License-Identifier: Apache-2.0

// Package fairqueue shares the workers among Git services and namespaces: neither a service that
// hangs nor a tenant whose services hang can hold them all (B15, S6). Whoever finds no turn stands
// in a line and is woken when its turn comes: see docs/adr/0025.
package fairqueue

import (
	"maps"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// Retry is when an event that stands in a line comes back although nobody has woken it. Nothing
	// is known that could lose a call, because caller and workqueue are the same process; this is
	// for what nobody has thought of.
	Retry = 10 * time.Minute
	// Unlisted is when an event comes back for which no line had room.
	Unlisted = 30 * time.Second
	// Reserved is how long a turn is kept for the event that was called: longer than a woken event
	// waits for a free worker, shorter than the 50 s for which a worker may hang.
	Reserved = 10 * time.Second
	// maxRest is the longest pause between two pull requests of a Repository. It is for what takes
	// the API server's and our processors, which is over sooner; who waits for a Git service leaves
	// them to others anyway.
	maxRest = 100 * time.Millisecond
	// maxWaiting bounds the places in all lines, at some 300 bytes each. It is as many as events
	// may be open at once by default. When all are taken, whose namespace has the most of them
	// makes room for others.
	maxWaiting = 10_000
)

// The shares of the workers, as the metrics name them. Each is at least one worker.
const (
	// Work is what a namespace has for whatever is done for its events: a half. An admission
	// webhook of a team may hang, too.
	Work = "work"
	// Namespace is what a namespace has at all Git services together: a quarter, whatever its own
	// servers do.
	Namespace = "namespace"
	// NamespaceHost is what a namespace has at one Git host: one less than a quarter. If that host
	// hangs, one is left for its repositories elsewhere.
	NamespaceHost = "namespace_host"
	// Installation is what an installation of the App has, or all tenants of a host without one: a
	// half, so that two namespaces have their whole quarter there.
	Installation = "installation"
	// PullRequests is what those of one Repository have that nothing is done for yet: one of 64,
	// and at least one. Those that have begun have one more. Strangers may push to 80 of them at
	// once, and while all of those were worked on there was no processor left for the pushes beside
	// them.
	PullRequests = "pull_requests"
	// Host is what a Git host has: three quarters. If one hangs that many tenants use, one
	// namespace elsewhere has its whole quarter.
	Host = "host"
)

// Visit is an event's at a Git service.
type Visit struct {
	// Event is the name of the event: who is woken.
	Event string
	// Namespace is that of the event's Repository.
	Namespace string
	// Host is the Git service's, e.g. "github.com".
	Host string
	// Installation is that of the GitHub App, 0 if there is none.
	Installation int64
	// PullsOf is the Repository if the event is of a pull request, else "".
	PullsOf string
	// Renews tells that it is time to renew a token that a run uses. It goes before whatever else
	// waits for the installation: a check can wait, a token ends.
	Renews bool
}

// Options are what Turns work with. All but After are needed.
type Options struct {
	// Workers is how many there are to share.
	Workers int
	Now     func() time.Time
	// Wake enqueues an event after a time. It is not called while a method of Turns holds its lock.
	Wake func(event string, after time.Duration)
	// Refused is told of each share that was all taken when somebody asked.
	Refused func(share string)
	// After calls f after a time; nil is time.AfterFunc.
	After func(d time.Duration, f func())
}

// Turns is who has a turn and who waits for one. It is advice: losing it costs time, never an
// event. Safe for concurrent use.
type Turns struct {
	options Options

	mu      sync.Mutex
	shares  map[place]*share
	windows map[place]*window
	lines   map[lineKey]*line
	events  map[string]*event
	waiting map[string]int // events in lines, by the share that each found taken
	places  map[string]int // the same, by namespace
	total   int            // of them
	called  []call         // to wake as soon as the lock is released
	served  uint64         // counts turns and new lines
	timer   time.Time      // when the current alarm calls tick; zero if there is none
	alarms  uint64         // counts the alarms that were set; the last one is the current one
}

// event is what Turns know of one.
type event struct {
	name            string
	atWork, atVisit *line     // where it stands; nil nowhere
	found           [2]string // the share of which it found no turn, there and there
	work, visit     []*share  // the turns that are kept for it
	until           time.Time // for how long, if it is not attended
	attended        bool      // it is worked on
}

// call is an event to wake after a time.
type call struct {
	event string
	after time.Duration
}

// New returns Turns that nobody has.
func New(o Options) *Turns {
	if o.After == nil {
		o.After = func(d time.Duration, f func()) { time.AfterFunc(d, f) }
	}
	return &Turns{
		options: o,
		shares:  map[place]*share{},
		windows: map[place]*window{},
		lines:   map[lineKey]*line{},
		events:  map[string]*event{},
		waiting: map[string]int{},
		places:  map[string]int{},
	}
}

// Begin takes a turn for whatever is done for an event. With visits, which says that nothing can be
// done for it without the Git service, it takes a turn there as well and keeps it for Visit. It
// never waits: while there is none the event stands in a line, and the error is a Throttled fault
// with fault.ReasonBusy. Until the event is woken nothing needs to be done for it. Otherwise
// release gives back what is kept, once.
func (t *Turns) Begin(v Visit, visits bool) (release func(), err error) {
	defer t.wake()
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.event(v.Event)
	if e.attended { // a workqueue gives a key to one worker at a time
		return nil, fault.Throttledf(fault.ReasonBusy, time.Second, "event %s is being worked on", v.Event)
	}
	if e.work == nil {
		if err := t.begin(e, v, visits); err != nil {
			return nil, err
		}
	}
	used := e.work
	e.work, e.attended, e.until = nil, true, time.Time{}
	return t.once(func() {
		t.give(used)
		t.give(e.visit)
		e.visit, e.attended = nil, false
		t.forget(e)
	}), nil
}

func (t *Turns) begin(e *event, v Visit, visits bool) error {
	key := lineKey{namespace: v.Namespace, pullsOf: v.PullsOf}
	if visits {
		key = lineKey{
			namespace:    v.Namespace,
			host:         v.Host,
			installation: v.Installation,
			pullsOf:      v.PullsOf,
			visits:       true,
			fresh:        true,
		}
	}
	shares, err := t.take(e, key, 0)
	if err != nil {
		return err
	}
	t.leave(e, e.atWork) // e.g. after a plan was found that the cache did not have
	e.keep(shares, visits)
	return nil
}

// Visit takes a turn at a Git service, beside the one of Begin and like it: the one that is kept
// for the event, if there is one.
func (t *Turns) Visit(v Visit) (release func(), err error) {
	defer t.wake()
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.event(v.Event)
	if e.visit == nil {
		if e.visit, err = t.take(
			e,
			lineKey{
				namespace:    v.Namespace,
				host:         v.Host,
				installation: v.Installation,
				pullsOf:      v.PullsOf,
				visits:       true,
				renews:       v.Renews,
			},
			1,
		); err != nil {
			return nil, err
		}
	}
	used := e.visit
	e.visit = nil
	return t.once(func() {
		t.give(used)
		t.forget(e)
	}), nil
}

// Leave is called for an event that needs no turn any more, because it is settled or another
// process leads it.
func (t *Turns) Leave(name string) {
	defer t.wake()
	t.mu.Lock()
	defer t.mu.Unlock()
	e, known := t.events[name]
	if !known {
		return
	}
	t.leave(e, e.atWork)
	t.leave(e, e.atVisit)
	if !e.attended {
		t.drop(e)
	}
	t.next()
}

// once returns what gives a turn back, and does nothing when it is called again.
func (t *Turns) once(giveBack func()) func() {
	given := false
	return func() {
		defer t.wake()
		t.mu.Lock()
		defer t.mu.Unlock()
		if given {
			return
		}
		given = true
		giveBack()
		t.next()
	}
}

// take takes a turn of the line's shares but the first so many, or joins the line.
func (t *Turns) take(e *event, key lineKey, but int) ([]*share, error) {
	if key.renews && e.atVisit != nil && !e.atVisit.key.renews {
		t.leave(e, e.atVisit) // it goes over to the line of the renewals
	}
	if !e.stands(key) {
		all := t.sharesOf(key)
		full := t.full(all[but:])
		if full == nil {
			t.count(all[but:])
			t.tidy(all)
			return all[but:], nil
		}
		t.options.Refused(full.share)
		if !t.join(e, key, all, full.share) {
			t.tidy(all)
			t.forget(e)
			return nil, fault.Throttledf(
				fault.ReasonBusy,
				Unlisted,
				"waiting for other events, of which there are more than are remembered",
			)
		}
	}
	return nil, fault.Throttledf(fault.ReasonBusy, Retry, "waiting for other events in a line")
}

func (t *Turns) event(name string) *event {
	e, known := t.events[name]
	if !known {
		e = &event{name: name}
		t.events[name] = e
	}
	return e
}

// forget forgets an event that has nothing and waits for nothing.
func (t *Turns) forget(e *event) {
	if !e.attended && e.atWork == nil && e.atVisit == nil && e.work == nil && e.visit == nil && t.events[e.name] == e {
		delete(t.events, e.name)
	}
}

// wake tells the events that were called, without the lock.
func (t *Turns) wake() {
	t.mu.Lock()
	called := t.called
	t.called = nil
	t.mu.Unlock()
	for _, c := range called {
		t.options.Wake(c.event, c.after)
	}
}

// Waiting returns how many events stand in lines, by the share of which each found no turn.
func (t *Turns) Waiting() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.waiting)
}
