// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"cmp"
	"maps"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
)

// RepoOptions say how a repository starts. The zero value is a public, empty
// repository whose default branch is main.
type RepoOptions struct {
	Private       bool
	DefaultBranch string
	// ForkOf is owner/name of the repository this one is a fork of; the fork
	// starts with its branches and tags.
	ForkOf string
}

// Repo is what a test needs to know of a repository.
type Repo struct {
	ID       int64
	FullName string
	HTMLURL  string
	CloneURL string
}

type repo struct {
	id            int64
	owner         *account
	name          string
	private       bool
	defaultBranch string
	parent        *repo
	created       time.Time
	db            gitdb.DB
	branches      map[string]string
	tags          map[string]string    // name -> commit
	annotated     map[string]string    // name -> tag object, of annotated tags
	updates       map[string]refUpdate // the last change of every full ref
	pulls         []*pull
	collaborators map[string]string   // login -> role
	required      map[string][]string // branch -> names of checks
	lastEvent     time.Time
	hook          *installation // the repository's own webhook, in the form of an App's
	hooks         []Hook        // those that were set up through the API
}

// refUpdate is what a push event tells.
type refUpdate struct {
	before, after string
	by            *account
	forced        bool
}

const zeroSHA = gitdb.ZeroSHA

// CreateRepo creates a repository. An owner that is not known yet becomes an
// organisation, or a user if the repository is a fork.
func (g *GitHub) CreateRepo(owner, name string, o RepoOptions) Repo {
	defer g.lock()()
	if g.repos[key(owner+"/"+name)] != nil {
		invalidUse("CreateRepo: %s/%s exists", owner, name)
	}
	kind := "Organization"
	if o.ForkOf != "" {
		kind = "User"
	}
	r := &repo{
		id: g.core.NextID(), owner: g.accountOf(owner, kind), name: name, private: o.Private,
		defaultBranch: cmp.Or(o.DefaultBranch, "main"), created: g.now(), db: gitdb.DB{},
		branches: map[string]string{}, tags: map[string]string{}, annotated: map[string]string{},
		updates: map[string]refUpdate{}, collaborators: map[string]string{}, required: map[string][]string{},
	}
	if o.ForkOf != "" {
		r.parent = g.mustRepo(o.ForkOf)
		r.db, r.branches, r.tags = maps.Clone(r.parent.db), maps.Clone(r.parent.branches), maps.Clone(r.parent.tags)
		r.defaultBranch = cmp.Or(o.DefaultBranch, r.parent.defaultBranch)
	}
	g.repos[key(r.fullName())] = r
	g.core.Notify()
	return Repo{ID: r.id, FullName: r.fullName(), HTMLURL: r.html(g), CloneURL: r.html(g) + ".git"}
}

// SetPrivate changes a repository's visibility.
func (g *GitHub) SetPrivate(repo string, private bool) {
	defer g.lock()()
	g.mustRepo(repo).private = private
}

// DeleteRepo removes a repository.
func (g *GitHub) DeleteRepo(repo string) {
	defer g.lock()()
	delete(g.repos, key(g.mustRepo(repo).fullName()))
}

func (g *GitHub) mustRepo(name string) *repo {
	r := g.repos[key(name)]
	if r == nil {
		invalidUse("no repository %q", name)
	}
	return r
}

func (g *GitHub) repoByID(id int64) *repo {
	for _, r := range g.repos {
		if r.id == id {
			return r
		}
	}
	return nil
}

func (r *repo) fullName() string { return r.owner.login + "/" + r.name }

func (r *repo) html(g *GitHub) string { return g.core.BaseURL + "/" + r.fullName() }

func (r *repo) api(g *GitHub) string { return g.core.BaseURL + "/api/v3/repos/" + r.fullName() }

// resolve returns the commit that a ref means; HEAD is the default branch.
func (r *repo) resolve(ref string) string {
	if ref == "HEAD" {
		ref = r.defaultBranch
	}
	return r.db.Resolve(r.branches, r.tags, ref)
}

func (r *repo) json(g *GitHub) object {
	api, html := r.api(g), r.html(g)
	visibility := "public"
	if r.private {
		visibility = "private"
	}
	o := object{
		"id": r.id, "node_id": nodeID("R", r.id), "name": r.name, "full_name": r.fullName(),
		"private": r.private, "visibility": visibility, "owner": r.owner.json(g), "fork": r.parent != nil,
		"html_url": html, "url": api, "clone_url": html + ".git", "git_url": html + ".git",
		"ssh_url":        "git@" + strings.TrimPrefix(g.core.BaseURL, "http://") + ":" + r.fullName() + ".git",
		"default_branch": r.defaultBranch, "description": nil, "archived": false, "disabled": false,
		"created_at": r.created.Format(time.RFC3339), "updated_at": r.created.Format(time.RFC3339),
		"pushed_at": r.created.Format(time.RFC3339), "size": len(r.db), "language": nil, "topics": []string{},
		"contents_url": api + "/contents/{+path}", "trees_url": api + "/git/trees{/sha}",
		"commits_url": api + "/commits{/sha}", "collaborators_url": api + "/collaborators{/collaborator}",
		"pulls_url": api + "/pulls{/number}", "statuses_url": api + "/statuses/{sha}",
	}
	return o
}

func getRepo(c *call) answer {
	o := c.repo.json(c.g)
	if c.repo.parent != nil {
		o["parent"] = c.repo.parent.json(c.g)
		o["source"] = c.repo.parent.json(c.g)
	}
	if c.token != nil && c.token.user != nil {
		o["permissions"] = c.repo.collaboratorJSON(c.g, c.token.user)["permissions"]
	}
	return ok(o)
}

func getBranch(c *call) answer {
	name := c.r.PathValue("branch")
	sha, found := c.repo.branches[name]
	if !found {
		return refuse(404, c.rt.doc, "Branch not found")
	}
	return ok(object{"name": name, "protected": false, "commit": c.repo.commitJSON(c.g, c.repo.db[sha].Commit)})
}

func getRef(c *call) answer {
	ref := c.r.PathValue("ref")
	var sha string
	kind := "commit"
	if name, found := strings.CutPrefix(ref, "heads/"); found {
		sha = c.repo.branches[name]
	} else if name, found := strings.CutPrefix(ref, "tags/"); found {
		sha = c.repo.tags[name]
		if object := c.repo.annotated[name]; object != "" {
			sha, kind = object, "tag"
		}
	}
	if sha == "" {
		return notFound(c.rt.doc)
	}
	return ok(object{"ref": "refs/" + ref, "url": c.repo.api(c.g) + "/git/refs/" + ref,
		"object": object{"sha": sha, "type": kind, "url": c.repo.api(c.g) + "/git/" + kind + "s/" + sha}})
}
