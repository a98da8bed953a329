// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"maps"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
)

// Visibilities of a project.
const (
	Private  = "private"
	Internal = "internal"
	Public   = "public"
)

// ProjectOptions say how a project starts. The zero value is a private, empty
// project whose default branch main is protected, as GitLab does it.
type ProjectOptions struct {
	Visibility    string
	DefaultBranch string
	// ForkOf is the full path of the project this one is a fork of; the fork starts with its
	// branches and tags, and its namespace is a user's unless a group of that path exists.
	ForkOf string
	// Unprotected leaves the default branch open to developers.
	Unprotected bool
}

// Project is what a test needs to know of a project.
type Project struct {
	ID       int64
	FullPath string
	WebURL   string
	CloneURL string
}

type project struct {
	id            int64
	path          string // full
	group         *group // or
	personal      *user
	visibility    string
	defaultBranch string
	parent        *project
	created       time.Time
	lastAct       time.Time // what was done last to it or its forks
	db            gitdb.DB
	branches      map[string]string
	tags          map[string]string    // name -> commit
	annotated     map[string]string    // name -> tag object, of annotated tags
	updates       map[string]refUpdate // the last change of every full ref
	activities    []activity           // oldest first
	mrs           []*mergeRequest
	members       map[int64]Level
	protected     map[string]Level // branch -> who may push
	labels        map[string]int64
}

// refUpdate is what a push event tells.
type refUpdate struct {
	before, after string
	by            *user
}

// CreateProject creates a project by its full path; groups on the way that do
// not exist are created.
func (g *GitLab) CreateProject(path string, o ProjectOptions) Project {
	defer g.lock()()
	slash := strings.LastIndex(path, "/")
	if g.projects[key(path)] != nil || slash < 1 {
		invalidUse("CreateProject: %q exists or has no namespace", path)
	}
	p := &project{
		id: g.core.NextID(), path: path, visibility: cmp.Or(o.Visibility, Private),
		defaultBranch: cmp.Or(o.DefaultBranch, "main"), created: g.now(), db: gitdb.DB{},
		branches: map[string]string{}, tags: map[string]string{}, annotated: map[string]string{},
		updates: map[string]refUpdate{},
		members: map[int64]Level{}, protected: map[string]Level{}, labels: map[string]int64{},
	}
	if space := path[:slash]; o.ForkOf != "" && g.groups[key(space)] == nil {
		p.personal = g.userOf(space)
	} else {
		p.group = g.groupOf(space)
	}
	if o.ForkOf != "" {
		p.parent = g.mustProject(o.ForkOf)
		p.db, p.branches, p.tags = maps.Clone(p.parent.db), maps.Clone(p.parent.branches), maps.Clone(p.parent.tags)
		p.defaultBranch = cmp.Or(o.DefaultBranch, p.parent.defaultBranch)
		p.visibility = cmp.Or(o.Visibility, p.parent.visibility)
	}
	if !o.Unprotected {
		p.protected[p.defaultBranch] = Maintainer
	}
	g.projects[key(path)] = p
	g.core.Notify()
	return Project{ID: p.id, FullPath: p.path, WebURL: p.web(g), CloneURL: p.web(g) + ".git"}
}

// DeleteProject removes a project.
func (g *GitLab) DeleteProject(path string) {
	defer g.lock()()
	delete(g.projects, key(g.mustProject(path).path))
	g.core.Notify()
}

// SetVisibility changes who sees a project: Private, Internal or Public.
func (g *GitLab) SetVisibility(path, visibility string) {
	defer g.lock()()
	g.mustProject(path).visibility = visibility
	g.core.Notify()
}

// ProtectBranch lets only users of at least the level push to a branch, and
// only them post statuses on it; NoAccess ends the protection.
func (g *GitLab) ProtectBranch(path, branch string, l Level) {
	defer g.lock()()
	p := g.mustProject(path)
	if l == NoAccess {
		delete(p.protected, branch)
		return
	}
	p.protected[branch] = l
}

func (g *GitLab) mustProject(path string) *project {
	p := g.projects[key(path)]
	if p == nil {
		invalidUse("no project %q", path)
	}
	return p
}

func (g *GitLab) projectByID(id int64) *project {
	for _, p := range g.projects {
		if p.id == id {
			return p
		}
	}
	return nil
}

func (p *project) name() string { return p.path[strings.LastIndex(p.path, "/")+1:] }

func (p *project) space() string { return p.path[:strings.LastIndex(p.path, "/")] }

func (p *project) web(g *GitLab) string { return g.web() + "/" + p.path }

func (p *project) ssh(g *GitLab) string {
	_, host, _ := strings.Cut(g.web(), "://")
	host, _, _ = strings.Cut(host, ":")
	return "git@" + host + ":" + p.path + ".git"
}

// resolve returns the commit that a ref means; HEAD is the default branch.
func (p *project) resolve(ref string) string {
	if ref == "HEAD" {
		ref = p.defaultBranch
	}
	return p.db.Resolve(p.branches, p.tags, ref)
}

// canSee reports whether a user (nil without credentials) may know of the project.
func (p *project) canSee(u *user) bool {
	switch {
	case p.visibility == Public, p.visibility == Internal && u != nil:
		return true
	}
	return p.levelOf(u) >= Guest
}

// canRead reports whether a user who may see the project may read its code,
// merge requests and statuses.
func (p *project) canRead(u *user) bool {
	return p.visibility != Private || p.levelOf(u) >= Reporter
}

func (p *project) json(g *GitLab, u *user) object {
	web := p.web(g)
	kind, spaceID := "group", int64(0)
	if p.personal != nil {
		kind, spaceID = "user", p.personal.id
	} else {
		spaceID = p.group.id
	}
	o := object{
		"id": p.id, "name": p.name(), "path": p.name(), "path_with_namespace": p.path,
		"name_with_namespace": strings.ReplaceAll(p.path, "/", " / "), "description": nil,
		"default_branch": p.defaultBranch, "visibility": p.visibility, "web_url": web,
		"http_url_to_repo": web + ".git", "ssh_url_to_repo": p.ssh(g), "readme_url": nil, "avatar_url": nil,
		"created_at": stamp(p.created), "last_activity_at": stamp(p.created), "archived": false,
		"empty_repo": len(p.branches) == 0, "topics": []string{}, "tag_list": []string{}, "star_count": 0, "forks_count": 0,
		"namespace": object{"id": spaceID, "name": p.space(), "path": p.space(), "kind": kind, "full_path": p.space(),
			"web_url": g.web() + "/" + p.space(), "parent_id": nil, "avatar_url": nil},
		"merge_requests_enabled": true, "jobs_enabled": true, "builds_access_level": "enabled",
		"repository_access_level": "enabled", "merge_requests_access_level": "enabled", "ci_config_path": nil,
		"permissions": object{"project_access": access(p.members[idOf(u)]), "group_access": access(p.inherited(u))},
	}
	if len(p.branches) == 0 {
		o["default_branch"] = nil
	}
	if p.parent != nil {
		o["forked_from_project"] = object{
			"id": p.parent.id, "name": p.parent.name(), "path": p.parent.name(), "path_with_namespace": p.parent.path,
			"web_url": p.parent.web(g), "http_url_to_repo": p.parent.web(g) + ".git",
			"default_branch": p.parent.defaultBranch, "created_at": stamp(p.parent.created),
		}
	}
	return o
}

// hookJSON is a project in webhook payloads.
func (p *project) hookJSON(g *GitLab) object {
	web := p.web(g)
	return object{
		"id": p.id, "name": p.name(), "description": nil, "web_url": web, "avatar_url": nil,
		"git_ssh_url": p.ssh(g), "git_http_url": web + ".git", "namespace": p.space(),
		"visibility_level":    map[string]int{Private: 0, Internal: 10, Public: 20}[p.visibility],
		"path_with_namespace": p.path, "default_branch": p.defaultBranch, "ci_config_path": nil,
		"homepage": web, "url": p.ssh(g), "ssh_url": p.ssh(g), "http_url": web + ".git",
	}
}

func access(l Level) any {
	if l == NoAccess {
		return nil
	}
	return object{"access_level": l, "notification_level": 3}
}

func idOf(u *user) int64 {
	if u == nil {
		return 0
	}
	return u.id
}

func (p *project) inherited(u *user) Level {
	best := NoAccess
	for gr := p.group; gr != nil; gr = gr.parent {
		best = max(best, gr.members[idOf(u)])
	}
	return best
}
