// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"strings"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
)

// account is a user, a bot or an organisation.
type account struct {
	id      int64
	login   string
	kind    string // User, Bot or Organization
	members map[string]*membership
	base    string // an organisation's base permission for members
	teams   map[string]*team
}

type membership struct {
	user   *account
	public bool
	owner  bool
}

// accountOf finds an account or creates it. The caller holds mu.
func (g *GitHub) accountOf(login, kind string) *account {
	a := g.accounts[key(login)]
	if a == nil {
		if strings.HasSuffix(login, "[bot]") || login == "Copilot" { // that App's login has no suffix
			kind = "Bot"
		}
		a = &account{id: g.core.NextID(), login: login, kind: kind, members: map[string]*membership{}, base: "read"}
		g.accounts[key(login)] = a
	}
	return a
}

// userOf finds a person or creates one. The caller holds mu.
func (g *GitHub) userOf(login string) *account {
	a := g.accountOf(login, "User")
	if a.kind == "Organization" {
		invalidUse("%s is an organisation; call AddUser before CreateRepo if it shall be a user", login)
	}
	return a
}

// AddUser makes a user known. Users named in commits, pull requests and memberships are made known
// by these; AddUser is for one who has done nothing, or who shall own repositories.
func (g *GitHub) AddUser(login string) int64 {
	defer g.lock()()
	return g.accountOf(login, "User").id
}

// SetOrgMember makes a user a member of an organisation; public shows the membership to other
// users.
func (g *GitHub) SetOrgMember(org, user string, public bool) {
	defer g.lock()()
	o := g.accountOf(org, "Organization")
	o.members[key(user)] = &membership{user: g.userOf(user), public: public}
}

// SetOrgOwner makes a user an owner of an organisation, which is admin on all its repositories.
func (g *GitHub) SetOrgOwner(org, user string) {
	defer g.lock()()
	o := g.accountOf(org, "Organization")
	o.members[key(user)] = &membership{user: g.userOf(user), public: true, owner: true}
}

// SetOrgBasePermission sets what members may do on every repository of the
// organisation: none, read (GitHub's default), write or admin.
func (g *GitHub) SetOrgBasePermission(org, permission string) {
	defer g.lock()()
	g.accountOf(org, "Organization").base = permission
}

// person is the account as an author of commits.
func (a *account) person() gitdb.Person { return gitdb.Person{Name: a.login, Email: a.email()} }

func (a *account) email() string {
	return itoa(a.id) + "+" + a.login + "@users.noreply.github.com"
}

func (a *account) json(g *GitHub) object {
	api := g.core.BaseURL + "/api/v3/users/" + a.login
	return object{
		"login": a.login, "id": a.id, "node_id": nodeID("U", a.id), "type": a.kind, "site_admin": false,
		"avatar_url": g.core.BaseURL + "/avatars/u/" + itoa(a.id), "gravatar_id": "",
		"url": api, "html_url": g.core.BaseURL + "/" + a.login, "repos_url": api + "/repos",
	}
}
