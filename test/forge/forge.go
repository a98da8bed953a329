// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// Options tune a GitHub. The zero value is GitHub's documented behaviour.
type Options struct {
	// Addr is where Start listens; empty is a free port of 127.0.0.1.
	Addr string
	// Now is the forge's clock; nil is time.Now. It must be safe for concurrent use.
	Now func() time.Time
	// TokenLife is how long an installation token works; zero is one hour.
	TokenLife time.Duration
	// RateLimit is the number of requests an installation may make in an hour;
	// zero is 12500, the most GitHub documents for one.
	RateLimit int
	// TreeLimit is the number of entries of a recursive tree before it is
	// truncated; zero is GitHub's 100000.
	TreeLimit int
	// RefuseEarlyConclusion answers 422 when a check run is written with a conclusion and an
	// explicit status that is not "completed". GitHub documents that the conclusion wins and
	// completes the check; this makes the forge stricter, so that a client which contradicts itself
	// is found.
	RefuseEarlyConclusion bool
	// ChecksWithoutApp lists check runs with "app": null, as GitHub's schema
	// allows and services that copy its API do.
	ChecksWithoutApp bool
	// DeliveryTimeout is how long a delivery waits for its answer; zero is GitHub's 10 seconds.
	DeliveryTimeout time.Duration
	// OnWrite gets every mutating call at the moment it is decided; nil without credentials. It
	// runs under the forge's lock and must not call the forge.
	OnWrite func(Write)
}

// GitHub is one forge. Create it with New; all methods are safe for concurrent use.
type GitHub struct {
	*traffic.Host[*State, Write]
	gitdb.Pushes

	opts Options
	mux  *http.ServeMux
	core *traffic.Core

	mu         *sync.Mutex // the core's, which guards all that follows
	accounts   map[string]*account
	apps       map[int64]*app
	installs   map[int64]*installation
	tokens     map[string]*token
	minted     []string // the secrets of all tokens that ever were
	repos      map[string]*repo
	checks     []*checkRun
	statuses   []*commitStatus
	comments   []*comment
	remarks    []*commitComment
	suites     map[string]int64
	usage      map[string]*usage
	deliveries []*DeliveryRecord
	bodies     map[string]Delivery
	manifests  map[string]manifest // by code
}

// New returns a forge that is not listening yet. Handler works at once; URL
// and deliveries need Start.
func New(o Options) *GitHub {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.TokenLife = cmp.Or(o.TokenLife, time.Hour)
	o.RateLimit = cmp.Or(o.RateLimit, 12500)
	o.TreeLimit = cmp.Or(o.TreeLimit, 100000)
	o.DeliveryTimeout = cmp.Or(o.DeliveryTimeout, 10*time.Second)
	g := &GitHub{
		opts:      o,
		core:      traffic.New(o.Now, 1000),
		accounts:  map[string]*account{},
		apps:      map[int64]*app{},
		installs:  map[int64]*installation{},
		tokens:    map[string]*token{},
		repos:     map[string]*repo{},
		suites:    map[string]int64{},
		usage:     map[string]*usage{},
		bodies:    map[string]Delivery{},
		manifests: map[string]manifest{},
	}
	g.mu = &g.core.Mu
	g.mux = g.newMux()
	g.Host = traffic.NewHost[*State, Write](g.core, o.Addr, g.Handler(),
		func() *State { return &State{traffic.ViewOf(g.Host), g} })
	look := func(string) func() { return g.lock() }
	g.Pushes = gitdb.NewPushes(look, look, func(repo string) gitdb.Target { return g.target(g.mustRepo(repo)) })
	return g
}

// APIURL is URL with /api/v3/, as an Enterprise client wants it. It ends in a slash.
func (g *GitHub) APIURL() string { return g.URL() + "/api/v3/" }

// Handler serves the routes with and without the /api/v3 prefix.
func (g *GitHub) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		escaped := joinRef(strings.TrimPrefix(r.URL.EscapedPath(), "/api/v3"))
		r.URL.Path, r.URL.RawPath = strings.TrimPrefix(r.URL.Path, "/api/v3"), escaped
		g.mux.ServeHTTP(w, r)
	})
}

// joinRef escapes the slashes of a branch name in the path, where clients
// leave them as they are: GitHub takes /commits/feature/x/check-runs too.
func joinRef(path string) string {
	parts := strings.Split(path, "/")
	if len(parts) < 7 || parts[1] != "repos" {
		return path
	}
	from := 5
	switch parts[4] {
	case "commits", "compare":
	case "git":
		if parts[5] != "trees" {
			return path
		}
		from = 6
	default:
		return path
	}
	to := len(parts)
	if last := parts[to-1]; parts[4] == "commits" && (last == "check-runs" || last == "statuses" || last == "pulls") {
		to--
	}
	ref := strings.Join(parts[from:to], "%2F")
	return strings.Join(append(append(parts[:from:from], ref), parts[to:]...), "/")
}

// lock locks the forge until done is called.
func (g *GitHub) lock() (done func()) {
	g.mu.Lock()
	return g.mu.Unlock
}

func (g *GitHub) now() time.Time { return g.opts.Now().UTC().Truncate(time.Second) }

// invalidUse stops a test whose author asked for something impossible.
func invalidUse(format string, args ...any) {
	panic("forge: " + fmt.Sprintf(format, args...))
}
