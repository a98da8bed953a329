// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// fakeGit is a Git service that accepts every check and remembers all writes.
type fakeGit struct {
	env      *env
	files    []git.File
	canWrite func(user string) (bool, error)
	checks   map[string]status.Check // by id
	writes   []status.Check
	err      error // answered to reads
	errAt    error // answered to reads by address
	loginErr error
	logins   int
	atLogin  func()
	loggedIn []provider.Credentials
	located  *v1alpha1.Located // of requests to /incoming
	locates  int
	hides    string // begins the addresses of which the service says that they are its own and show nothing
	tree     map[string]string
	read     []string // what was read of the repository, in order
	heads    int      // how often a commit was

	changed      git.Changes
	changedErr   error
	changedCalls int
	changes      func(*v1alpha1.GitEventSpec) (git.Changes, error) // instead of changed and changedErr
	filesErr     error                                             // answered to reads of .tekton
	pulls        []git.Pull
	pullsErr     error
	pullsCalls   int
	differs      []string // what any two commits do not have alike
	newer        string   // what has superseded the event
	newerErr     error
	newerFor     []string // the commits that were asked about
	tip          func(*v1alpha1.GitEventSpec) (string, error)
	poison       bool // listing the changed files panics
	skipCI       bool
	annotates    bool
	annotations  map[string][]v1alpha1.SourceLine // by the id of the check; set by failingSources
	reopens      bool                             // what lands late is shown

	asked       func(status.Check) error // may refuse a Put
	putBy       time.Time                // the deadline of the last Put
	soles       []bool                   // of each Put: only this process can have posted the check
	tokenLife   time.Duration            // an hour if it is not set
	tokens      []provider.Token         // all that were minted
	revoked     []string
	permissions map[string]string  // asked for last
	others      []v1alpha1.Project // asked for last
	othersRead  []v1alpha1.Project // with the last address
	covered     []v1alpha1.Project // by the installation
	listed      int                // how often covered was listed
	complete    func(*v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error)
	replies     conversation
	own         bool     // the Repository names its credentials
	large       int      // bytes that an answer with files takes
	placedBy    []string // the Repositories' URLs that the service's was read off
}

func (g *fakeGit) provider() provider.Provider {
	p := provider.Provider{Name: "fake", Reopens: g.reopens, Annotates: g.annotates, Webhook: bodyIsComment{},
		Comments: g.replies.results != nil,
		Locate: func(context.Context, string, v1alpha1.Project, provider.Credentials) (v1alpha1.Located, error) {
			g.locates++
			return *g.located, nil
		},
		Connect: func(_ context.Context, _ string, _ v1alpha1.Project, c provider.Credentials) (provider.Client, error) {
			g.logins++
			g.loggedIn = append(g.loggedIn, c)
			if g.atLogin != nil {
				g.atLogin()
			}
			if g.loginErr != nil {
				return provider.Client{}, g.loginErr
			}
			return provider.Client{
				Source: g, History: g, Tips: g, Addresses: g, Access: g, Reporter: g, Conversation: g, Tokens: g, Annotator: g,
			}, nil
		}, Metadata: func(id string) (labels, annotations map[string]string) {
			return map[string]string{pipelinesascode.CheckRunID: id}, map[string]string{}
		}}
	if g.own {
		p.BaseURL = func(_, repositoryURL string, _ v1alpha1.Project) string {
			g.placedBy = append(g.placedBy, repositoryURL)
			return "https://git.example"
		}
	}
	return p
}

func (g *fakeGit) Head(_ context.Context, e *v1alpha1.GitEventSpec) (git.Head, error) {
	g.heads++
	return git.Head{SHA: e.SHA, Commit: v1alpha1.Commit{Title: "a change", SkipCI: g.skipCI}, Project: e.Project}, g.err
}

func (g *fakeGit) Files(ctx context.Context, sha, _ string) ([]git.File, error) {
	g.read = append(g.read, sha+" .tekton")
	if err := memory.ReserveOf(ctx)(g.large); err != nil {
		return nil, err
	}
	if g.filesErr != nil {
		return nil, g.filesErr
	}
	return g.files, g.err
}

// File returns the file in tree at a commit, and records the call.
func (g *fakeGit) File(_ context.Context, sha, path string) ([]byte, error) {
	g.read = append(g.read, sha+" "+path)
	if text, found := g.tree[path]; found {
		return []byte(text), g.err
	}
	return nil, fault.Invalidf("FileNotFound", "%s does not exist at commit %s", path, sha)
}

func (g *fakeGit) FileAt(_ context.Context, address string, others ...v1alpha1.Project) ([]byte, error) {
	g.othersRead = others
	if g.hides != "" && strings.HasPrefix(address, g.hides) {
		return nil, fault.Ignoredf(fault.ReasonNotFound, "the service shows no such file")
	}
	if text, found := strings.CutPrefix(address, "https://git.example/"); found {
		g.read = append(g.read, address)
		return []byte(g.tree[text]), g.errAt
	}
	return nil, fault.Ignoredf(fault.ReasonOtherAddress, "another host")
}

func (g *fakeGit) DefaultBranch(context.Context) (string, error) { return defaultSHA, g.err }

func (g *fakeGit) Changed(_ context.Context, e *v1alpha1.GitEventSpec) (git.Changes, error) {
	g.changedCalls++
	if g.changes != nil {
		return g.changes(e)
	}
	if g.poison {
		panic("poison")
	}
	return g.changed, g.changedErr
}

func (g *fakeGit) Pulls(context.Context, string) ([]git.Pull, error) {
	g.pullsCalls++
	return g.pulls, g.pullsErr
}

func (g *fakeGit) Complete(_ context.Context, e *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
	if g.complete == nil { // its deliveries are signed
		return e, nil
	}
	return g.complete(e.DeepCopy())
}

func (g *fakeGit) Versions(context.Context, *v1alpha1.GitEventSpec) ([]git.Version, error) {
	return nil, g.err
}

func (g *fakeGit) Differ(context.Context, string, string, ...string) ([]string, error) {
	return g.differs, g.err
}

func (g *fakeGit) Supersedes(_ context.Context, e *v1alpha1.GitEventSpec) (string, error) {
	g.newerFor = append(g.newerFor, e.SHA)
	return g.newer, g.newerErr
}

func (g *fakeGit) Tip(_ context.Context, e *v1alpha1.GitEventSpec) (string, error) {
	g.env.called("ask tip")
	if g.tip == nil {
		return "", nil
	}
	return g.tip(e)
}

// CanWrite returns true unless the test sets canWrite.
func (g *fakeGit) CanWrite(_ context.Context, user string) (bool, error) {
	if g.canWrite == nil {
		return true, nil
	}
	return g.canWrite(user)
}

func (g *fakeGit) Member(context.Context, string) (bool, error) { return false, nil }

func (g *fakeGit) InTeam(context.Context, string, string) (bool, error) { return false, nil }

func (g *fakeGit) RootFiles(context.Context, ...string) (map[string][]byte, error) {
	return nil, g.err
}

func (g *fakeGit) Actor(_ context.Context, _ *v1alpha1.GitEventSpec, told string) (string, error) {
	return told, nil
}

// Put adopts a check by its external ID like a real provider, unless nothing can have been posted.
func (g *fakeGit) Put(ctx context.Context, _ git.Head, id string, check status.Check, sole bool) (string, error) {
	g.putBy, _ = ctx.Deadline()
	g.soles = append(g.soles, sole)
	o := g.env.called("put check " + string(check.State) + string(check.Conclusion))
	if g.asked != nil && o.err == nil {
		o.err = g.asked(check)
	}
	if o.err != nil && !o.apply {
		return "", o.err
	}
	if o.kill && !o.apply {
		runtime.Goexit()
	}
	if sole {
		if err := provider.Fence(ctx); err != nil {
			return "", err
		}
	}
	if before := g.checks[id]; before.Conclusion != "" && check.Conclusion == "" && !g.reopens { // it is late
		return id, nil
	}
	g.writes = append(g.writes, check)
	if check.OnlyOpen {
		for known, other := range g.checks {
			if other.ExternalID == check.ExternalID && other.Conclusion == "" {
				g.checks[known] = check
			}
		}
		return id, nil
	}
	if id == "" {
		id = fmt.Sprint(len(g.checks) + 1)
	}
	for known, other := range g.checks { // the newest gets a conclusion
		if !sole && other.ExternalID == check.ExternalID && other.Name == check.Name &&
			(check.Conclusion != "" && known > id || g.checks[id].Name == "") {
			id = known
		}
	}
	g.checks[id] = check
	if o.kill {
		runtime.Goexit()
	}
	return id, o.err
}
