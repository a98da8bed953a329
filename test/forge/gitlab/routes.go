// SPDX-License-Identifier: Apache-2.0

package gitlab

import "net/http"

// Names of the routes, for Fault.Route, Write.Route, Request.Route and Count.
const (
	RouteProject       = "project.get"
	RouteMembers       = "members.list"
	RouteMember        = "members.get"
	RouteGroupMembers  = "groups.members"
	RouteUser          = "user.get"
	RouteTree          = "tree.list"
	RouteFile          = "files.get"
	RouteRawFile       = "files.raw"
	RouteCommit        = "commits.get"
	RouteCommitDiff    = "commits.diff"
	RouteCommitRefs    = "commits.refs"
	RouteCommitMRs     = "commits.mergeRequests"
	RouteDiscussions   = "commits.discussions"
	RouteCompare       = "compare.get"
	RouteBranch        = "branches.get"
	RouteTag           = "tags.get"
	RouteEvents        = "events.list"
	RouteMergeRequests = "mergeRequests.list"
	RouteMergeRequest  = "mergeRequests.get"
	RouteMRVersions    = "mergeRequests.versions"
	RouteMRStates      = "mergeRequests.states"
	RouteMRLabels      = "mergeRequests.labels"
	RouteMRDiffs       = "mergeRequests.diffs"
	RouteStatusCreate  = "statuses.create"
	RouteStatusList    = "statuses.list"
	RouteNoteList      = "notes.list"
	RouteNoteGet       = "notes.get"
	RouteNoteCreate    = "notes.create"
	RouteNoteUpdate    = "notes.update"
	RouteNoteDelete    = "notes.delete"
	RouteHooks         = "hooks.list"
	RouteHookCreate    = "hooks.create"
	RouteHookUpdate    = "hooks.update"
	RouteHookDelete    = "hooks.delete"
	RouteTokenSelf     = "tokens.self"
	RouteHookEvents    = "hooks.events"
	RouteHookResend    = "hooks.resend"
	RouteUnknown       = "unknown"
)

// Who may call a route.
type need int

const (
	signedIn   need = iota // any valid token; the path names no project
	seen                   // callers who may see the project
	readable               // callers who may read its code
	visitor                // a token whose user may see the project
	reader                 // a token whose user may read its code
	maintainer             // a token whose user maintains the project
)

// route is one line of the API.
type route struct {
	name    string
	method  string
	pattern string
	need    need
	scopes  []string // that do as well as api and, to read, read_api
	handle  func(*call) answer
}

func (g *GitLab) newMux() *http.ServeMux {
	mux := http.NewServeMux()
	for _, list := range [][]route{projectRoutes(), repositoryRoutes(), mergeRequestRoutes(), statusRoutes(),
		hookRoutes()} {
		for _, rt := range list {
			mux.HandleFunc(rt.method+" /api/v4"+rt.pattern, g.serve(rt))
		}
	}
	mux.HandleFunc("/", g.serve(route{name: RouteUnknown, need: signedIn,
		handle: func(*call) answer { return answer{Status: http.StatusNotFound, Body: object{"error": "404 Not Found"}} }}))
	return mux
}

func projectRoutes() []route {
	users := []string{ScopeReadUser}
	return []route{
		{RouteUser, "GET", "/user", signedIn, users, getUser},
		{RouteTokenSelf, "GET", "/personal_access_tokens/self", signedIn, []string{ScopeReadUser, ScopeReadRepository}, getTokenSelf},
		{RouteGroupMembers, "GET", "/groups/{group}/members/all", signedIn, nil, listGroupMembers},
		{RouteProject, "GET", "/projects/{id}", seen, nil, getProject},
		{RouteEvents, "GET", "/projects/{id}/events", seen, users, listEvents},
		{RouteMembers, "GET", "/projects/{id}/members/all", visitor, nil, listMembers},
		{RouteMember, "GET", "/projects/{id}/members/all/{user}", visitor, nil, getMember},
	}
}

func repositoryRoutes() []route {
	const r = "/projects/{id}/repository"
	files := []string{ScopeReadRepository}
	return []route{
		{RouteTree, "GET", r + "/tree", readable, nil, getTree},
		{RouteFile, "GET", r + "/files/{path}", readable, files, getFile},
		{RouteRawFile, "GET", r + "/files/{path}/raw", readable, files, getRawFile},
		{RouteCommit, "GET", r + "/commits/{sha}", readable, nil, getCommit},
		{RouteCommitDiff, "GET", r + "/commits/{sha}/diff", readable, nil, getCommitDiff},
		{RouteCommitRefs, "GET", r + "/commits/{sha}/refs", readable, nil, getCommitRefs},
		{RouteCommitMRs, "GET", r + "/commits/{sha}/merge_requests", readable, nil, getCommitMRs},
		{RouteDiscussions, "GET", r + "/commits/{sha}/discussions", reader, nil, listDiscussions},
		{RouteCompare, "GET", r + "/compare", readable, nil, compare},
		{RouteBranch, "GET", r + "/branches/{branch}", readable, nil, getBranch},
		{RouteTag, "GET", r + "/tags/{tag}", readable, nil, getTag},
	}
}

func mergeRequestRoutes() []route {
	const r = "/projects/{id}/merge_requests"
	return []route{
		{RouteMergeRequests, "GET", r, readable, nil, listMergeRequests},
		{RouteMergeRequest, "GET", r + "/{iid}", readable, nil, getMergeRequest},
		{RouteMRVersions, "GET", r + "/{iid}/versions", readable, nil, listMRVersions},
		{RouteMRStates, "GET", r + "/{iid}/resource_state_events", reader, nil, listStateEvents},
		{RouteMRLabels, "GET", r + "/{iid}/resource_label_events", reader, nil, listLabelEvents},
		{RouteMRDiffs, "GET", r + "/{iid}/diffs", readable, nil, listMRDiffs},
		{RouteNoteList, "GET", r + "/{iid}/notes", reader, nil, listNotes},
		{RouteNoteCreate, "POST", r + "/{iid}/notes", reader, nil, createNote},
		{RouteNoteGet, "GET", r + "/{iid}/notes/{note}", reader, nil, getNote},
		{RouteNoteUpdate, "PUT", r + "/{iid}/notes/{note}", reader, nil, updateNote},
		{RouteNoteDelete, "DELETE", r + "/{iid}/notes/{note}", reader, nil, deleteNote},
	}
}

func statusRoutes() []route {
	return []route{
		{RouteStatusCreate, "POST", "/projects/{id}/statuses/{sha}", visitor, nil, createStatus},
		{RouteStatusList, "GET", "/projects/{id}/repository/commits/{sha}/statuses", reader, nil, listStatuses},
	}
}

func hookRoutes() []route {
	const r = "/projects/{id}/hooks"
	return []route{
		{RouteHooks, "GET", r, maintainer, nil, listHooks},
		{RouteHookCreate, "POST", r, maintainer, nil, createHook},
		{RouteHookUpdate, "PUT", r + "/{hook}", maintainer, nil, updateHook},
		{RouteHookDelete, "DELETE", r + "/{hook}", maintainer, nil, deleteHook},
		{RouteHookEvents, "GET", r + "/{hook}/events", maintainer, nil, listHookEvents},
		{RouteHookResend, "POST", r + "/{hook}/events/{event}/resend", maintainer, nil, resendHookEvent},
	}
}
