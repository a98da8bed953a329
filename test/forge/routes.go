// SPDX-License-Identifier: Apache-2.0

package forge

import "net/http"

// Names of the routes, for Fault.Route, Write.Route, Request.Route and Count.
const (
	RouteApp              = "app.get"
	RouteAppDeliveries    = "app.deliveries"
	RouteAppRedeliver     = "app.redeliver"
	RouteInstallation     = "installation.get"
	RouteRepoInstallation = "installation.ofRepo"
	RouteToken            = "installation.token"
	RouteRevoke           = "installation.revoke"
	RouteCovered          = "installation.repositories"
	RouteRepo             = "repo.get"
	RouteBranch           = "branches.get"
	RouteCommit           = "commits.get"
	RouteCommitPulls      = "commits.pulls"
	RouteCompare          = "commits.compare"
	RouteTree             = "git.tree"
	RouteBlob             = "git.blob"
	RouteRef              = "git.ref"
	RouteContents         = "contents.get"
	RoutePulls            = "pulls.list"
	RoutePull             = "pulls.get"
	RoutePullFiles        = "pulls.files"
	RoutePermission       = "collaborators.permission"
	RouteCollaborator     = "collaborators.check"
	RouteMember           = "members.check"
	RoutePublicMember     = "members.public"
	RouteMembers          = "members.list"
	RouteTeam             = "teams.get"
	RouteTeamMembership   = "teams.membership"
	RouteCheckCreate      = "checks.create"
	RouteCheckUpdate      = "checks.update"
	RouteCheckGet         = "checks.get"
	RouteCheckList        = "checks.list"
	RouteCommentCreate    = "comments.create"
	RouteCommentUpdate    = "comments.update"
	RouteCommentList      = "comments.list"
	RouteStatusCreate     = "statuses.create"
	RouteStatusList       = "statuses.list"
	RouteUser             = "user.get"
	RouteHooks            = "hooks.list"
	RouteHookCreate       = "hooks.create"
	RouteHookUpdate       = "hooks.update"
	RouteClone            = "git.infoRefs"
	RouteNewApp           = "web.newApp"
	RouteConversion       = "app.conversion"
	RouteUnknown          = "unknown"
)

// Documentation pages, as refusals name them.
const (
	docs                   = "https://docs.github.com/rest"
	docApps                = docs + "/apps/apps"
	docRepos               = docs + "/repos/repos#get-a-repository"
	docBranches            = docs + "/branches/branches"
	docCommits             = docs + "/commits/commits"
	docGit                 = docs + "/git"
	docContents            = docs + "/repos/contents#get-repository-content"
	docPulls               = docs + "/pulls/pulls"
	docCollaborators       = docs + "/collaborators/collaborators"
	docMembers             = docs + "/orgs/members"
	docTeams               = docs + "/teams"
	docChecks              = docs + "/checks/runs"
	docComments            = docs + "/issues/comments"
	docCreateCheck         = docChecks + "#create-a-check-run"
	docUpdateCheck         = docChecks + "#update-a-check-run"
	docPermissionOfUser    = docCollaborators + "#get-repository-permissions-for-a-user"
	docInstallationToken   = docApps + "#create-an-installation-access-token-for-an-app"
	docAuthenticatingAsApp = docs
)

// Who may call a route.
type audience int

const (
	appJWT     audience = iota // the App itself
	repoReader                 // a token, or no credentials where the repository is public
	repoMember                 // a token whose scope holds the repository
	anyToken                   // any valid token
	gitClient                  // git itself, with a token for a password, or no credentials where the repository is public
)

// route is one line of the API.
type route struct {
	name     string
	method   string
	pattern  string
	audience audience
	// permission is what a token needs here, one of several if there is a bar between them; empty
	// needs none beyond being valid.
	permission string
	level      string // "read" or "write"
	doc        string
	handle     func(*call) answer
}

func (g *GitHub) newMux() *http.ServeMux {
	mux := http.NewServeMux()
	for _, list := range [][]route{
		appRoutes(), repoRoutes(), peopleRoutes(), checkRoutes(), statusRoutes(), hookRoutes(), cloneRoutes(),
		manifestRoutes(),
	} {
		for _, rt := range list {
			mux.HandleFunc(rt.method+" "+rt.pattern, g.serve(rt))
		}
	}
	mux.HandleFunc("/", g.serve(route{name: RouteUnknown, audience: anyToken, doc: docs,
		handle: func(c *call) answer { return notFound(docs) }}))
	return mux
}

func appRoutes() []route {
	return []route{
		{RouteApp, "GET", "/app", appJWT, "", "", docApps, getApp},
		{RouteAppDeliveries, "GET", "/app/hook/deliveries", appJWT, "", "", docs + "/apps/webhooks", listDeliveries},
		{RouteAppRedeliver, "POST", "/app/hook/deliveries/{id}/attempts", appJWT, "", "", docs + "/apps/webhooks", redeliver},
		{RouteInstallation, "GET", "/app/installations/{id}", appJWT, "", "", docApps, getInstallation},
		{RouteToken, "POST", "/app/installations/{id}/access_tokens", appJWT, "", "", docInstallationToken, createToken},
		{RouteRevoke, "DELETE", "/installation/token", anyToken, "", "", docApps + "#revoke-an-installation-access-token",
			revokeToken},
		{RouteCovered, "GET", "/installation/repositories", anyToken, "metadata", "read",
			docs + "/apps/installations#list-repositories-accessible-to-the-app-installation", listCovered},
		{RouteRepoInstallation, "GET", "/repos/{owner}/{repo}/installation", appJWT, "", "", docApps, getRepoInstallation},
	}
}

func repoRoutes() []route {
	const r = "/repos/{owner}/{repo}"
	return []route{
		{RouteRepo, "GET", r, repoReader, "metadata", "read", docRepos, getRepo},
		{RouteBranch, "GET", r + "/branches/{branch...}", repoReader, "contents", "read", docBranches, getBranch},
		{RouteCommit, "GET", r + "/commits/{ref}", repoReader, "contents", "read", docCommits, getCommit},
		{RouteCommitPulls, "GET", r + "/commits/{ref}/pulls", repoReader, "pull_requests", "read", docCommits,
			listCommitPulls},
		{RouteCompare, "GET", r + "/compare/{basehead}", repoReader, "contents", "read", docCommits, compare},
		{RouteTree, "GET", r + "/git/trees/{sha}", repoReader, "contents", "read", docGit + "/trees#get-a-tree", getTree},
		{RouteBlob, "GET", r + "/git/blobs/{sha}", repoReader, "contents", "read", docGit + "/blobs#get-a-blob", getBlob},
		{RouteRef, "GET", r + "/git/ref/{ref...}", repoReader, "contents", "read", docGit + "/refs#get-a-reference", getRef},
		{RouteContents, "GET", r + "/contents/{path...}", repoReader, "contents", "read", docContents, getContents},
		{RouteContents, "GET", r + "/contents", repoReader, "contents", "read", docContents, getContents},
		{RoutePulls, "GET", r + "/pulls", repoReader, "pull_requests", "read", docPulls, listPulls},
		{RoutePull, "GET", r + "/pulls/{number}", repoReader, "pull_requests", "read", docPulls, getPull},
		{RoutePullFiles, "GET", r + "/pulls/{number}/files", repoReader, "pull_requests", "read", docPulls, listPullFiles},
		{RouteCommentCreate, "POST", r + "/issues/{number}/comments", repoMember, "issues|pull_requests", "write",
			docComments, createComment},
		{RouteCommentUpdate, "PATCH", r + "/issues/comments/{id}", repoMember, "issues|pull_requests", "write", docComments,
			updateComment},
		{RouteCommentList, "GET", r + "/issues/{number}/comments", repoReader, "issues|pull_requests", "read", docComments,
			listComments},
	}
}

func peopleRoutes() []route {
	const r = "/repos/{owner}/{repo}/collaborators"
	return []route{
		{RouteCollaborator, "GET", r + "/{user}", repoMember, "metadata", "read", docCollaborators, getCollaborator},
		{RoutePermission, "GET", r + "/{user}/permission", repoMember, "metadata", "read", docPermissionOfUser,
			getPermission},
		{RouteMembers, "GET", "/orgs/{org}/members", anyToken, "", "", docMembers, listMembers},
		{RouteMember, "GET", "/orgs/{org}/members/{user}", anyToken, "", "", docMembers, getMember},
		{RouteTeam, "GET", "/orgs/{org}/teams/{team}", anyToken, "members", "read", docTeams, getTeam},
		{RouteTeamMembership, "GET", "/orgs/{org}/teams/{team}/memberships/{user}", anyToken, "members", "read", docTeams,
			getTeamMembership},
		{RoutePublicMember, "GET", "/orgs/{org}/public_members/{user}", anyToken, "", "", docMembers, getPublicMember},
	}
}

func checkRoutes() []route {
	const r = "/repos/{owner}/{repo}"
	return []route{
		{RouteCheckCreate, "POST", r + "/check-runs", repoMember, "checks", "write", docCreateCheck, createCheck},
		{RouteCheckUpdate, "PATCH", r + "/check-runs/{id}", repoMember, "checks", "write", docUpdateCheck, updateCheck},
		{RouteCheckGet, "GET", r + "/check-runs/{id}", repoReader, "checks", "read", docChecks, getCheck},
		{RouteCheckList, "GET", r + "/commits/{ref}/check-runs", repoReader, "checks", "read", docChecks, listChecks},
	}
}

// manifestRoutes register an App from a manifest: two pages of the web host, and a call that needs
// no credentials but the code.
func manifestRoutes() []route {
	const doc = docApps + "#create-a-github-app-from-a-manifest"
	return []route{
		{RouteNewApp, "POST", "/settings/apps/new", anyToken, "", "", doc, newApp},
		{RouteNewApp, "POST", "/organizations/{org}/settings/apps/new", anyToken, "", "", doc, newApp},
		{RouteConversion, "POST", "/app-manifests/{code}/conversions", anyToken, "", "", doc, convertManifest},
	}
}

// cloneRoutes are not part of the API: git asks the web host.
func cloneRoutes() []route {
	return []route{
		{RouteClone, "GET", "/{owner}/{repo}/info/refs", gitClient, "contents", "read", docs, infoRefs},
	}
}
