// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// Options tune a GitLab. The zero value is what gitlab.com documents.
type Options struct {
	// Addr is where Start listens; empty is a free port of 127.0.0.1.
	Addr string
	// ExternalURL is the start of every web URL in answers and payloads, such
	// as https://gitlab.example.com; empty is where Start listens.
	ExternalURL string
	// Now is the forge's clock; nil is time.Now. It must be safe for concurrent use.
	Now func() time.Time
	// ClockTimes gives what happens the clock's time, as a server does. Without it each thing that
	// is done to a project has a second of its own, which may be ahead of the clock.
	ClockTimes bool
	// RateLimit is the number of requests a user may make in a minute; zero is 2000.
	RateLimit int
	// DiffLimit is the number of files of a merge request's diff before the
	// rest is dropped; zero is 1000.
	DiffLimit int
	// CountLimit is the number of entries of a list above which totals are no
	// longer counted; zero is 10000.
	CountLimit int
	// DeliveryTimeout is how long a delivery waits for its answer; zero is 10 seconds.
	DeliveryTimeout time.Duration
	// FirstPause is how long a hook's first pause lasts; each further one is
	// twice as long, up to 1440 times the first. Zero is one minute.
	FirstPause time.Duration
	// KeepFailingHooks never disables a hook, as self-managed servers do by default.
	KeepFailingHooks bool
	// NoSkipped refuses the state "skipped", as servers before it was added.
	NoSkipped bool
	// NoDraftChange tells in an update's changes of the title alone where the
	// draft has changed, as servers before gitlab-org/gitlab!126899 do.
	NoDraftChange bool
	// AcceptRepeated takes the state that a status already has, as newer
	// servers are said to; the others refuse the transition.
	AcceptRepeated bool
}

// GitLab is one forge. Create it with New; all methods are safe for concurrent use.
type GitLab struct {
	*traffic.Host[*State, Write]
	gitdb.Pushes

	opts Options
	mux  *http.ServeMux
	core *traffic.Core

	mu         *sync.Mutex // the core's, which guards all that follows
	at         time.Time   // of what somebody does at the moment; zero outside of act
	users      map[string]*user
	groups     map[string]*group
	projects   map[string]*project
	tokens     map[string]*token
	pipelines  []*pipeline
	statuses   []*status
	notes      []*note
	hooks      map[int64]*hook
	usage      map[string]*usage
	deliveries []*DeliveryRecord
	sent       map[string]Delivery // the last with an Idempotency-Key
}

// New returns a forge that is not listening yet. Handler works at once; URL
// and deliveries need Start.
func New(o Options) *GitLab {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.RateLimit = cmp.Or(o.RateLimit, 2000)
	o.DiffLimit = cmp.Or(o.DiffLimit, 1000)
	o.CountLimit = cmp.Or(o.CountLimit, 10000)
	o.DeliveryTimeout = cmp.Or(o.DeliveryTimeout, 10*time.Second)
	o.FirstPause = cmp.Or(o.FirstPause, time.Minute)
	g := &GitLab{
		opts:     o,
		core:     traffic.New(o.Now, 100),
		users:    map[string]*user{},
		groups:   map[string]*group{},
		projects: map[string]*project{},
		tokens:   map[string]*token{},
		hooks:    map[int64]*hook{},
		usage:    map[string]*usage{},
		sent:     map[string]Delivery{},
	}
	g.mu = &g.core.Mu
	g.mux = g.newMux()
	g.Host = traffic.NewHost[*State, Write](g.core, o.Addr, g.mux,
		func() *State { return &State{traffic.ViewOf(g.Host), g} })
	look := func(string) func() { return g.lock() }
	g.Pushes = gitdb.NewPushes(g.act, look, func(path string) gitdb.Target { return g.target(g.mustProject(path)) })
	return g
}

// Handler serves /api/v4.
func (g *GitLab) Handler() http.Handler { return g.mux }

// web is the start of web URLs. The caller holds mu.
func (g *GitLab) web() string {
	return strings.TrimSuffix(cmp.Or(g.opts.ExternalURL, g.core.BaseURL), "/")
}

// lock locks the forge until done is called.
func (g *GitLab) lock() (done func()) {
	g.mu.Lock()
	return g.mu.Unlock
}

// act locks the forge until done is called, for one action in a project. Each action in a project
// or its forks has its own second, because clients read these times to the second. So the times
// run ahead of the clock when there is more than one action a second.
func (g *GitLab) act(project string) (done func()) {
	g.mu.Lock()
	p := g.mustProject(project)
	for p.parent != nil {
		p = p.parent
	}
	if g.at = g.now().Truncate(time.Second); !g.opts.ClockTimes && !g.at.After(p.lastAct) {
		g.at = p.lastAct.Add(time.Second)
	}
	p.lastAct = g.at
	return func() {
		g.at = time.Time{}
		g.mu.Unlock()
	}
}

// now is the time of what is being done, or the clock's. The caller holds mu.
func (g *GitLab) now() time.Time {
	if !g.at.IsZero() {
		return g.at
	}
	return g.opts.Now().UTC().Truncate(time.Millisecond)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// key is how paths and usernames are looked up: their case does not count.
func key(name string) string { return strings.ToLower(name) }

// invalidUse stops a test whose author asked for something impossible.
func invalidUse(format string, args ...any) {
	panic("gitlab: " + fmt.Sprintf(format, args...))
}
