// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"slices"
	"strings"
	"time"
)

// App is a registered GitHub App, as its owner sees it.
type App struct {
	ID            int64
	Slug          string
	PrivateKeyPEM string
	WebhookSecret string
	HookID        int64
}

type app struct {
	App
	key     *rsa.PublicKey
	webhook string // "" until SetWebhookURL
}

type installation struct {
	id          int64
	app         *app
	account     *account
	all         bool           // "all repositories"
	repos       map[int64]bool // otherwise
	permissions map[string]string
	suspended   bool
	created     time.Time
}

// CreateApp registers an App. An empty key generates one of 2048 bits.
func (g *GitHub) CreateApp(id int64, slug, privateKeyPEM, webhookSecret string) App {
	priv := parseKey(privateKeyPEM)
	defer g.lock()()
	if g.apps[id] != nil {
		invalidUse("CreateApp: %d exists", id)
	}
	a := g.registerApp(id, slug, priv, webhookSecret)
	if privateKeyPEM != "" {
		a.PrivateKeyPEM = privateKeyPEM
	}
	return a.App
}

// registerApp registers an App; without a key it gets one of 2048 bits. The caller holds mu.
func (g *GitHub) registerApp(id int64, slug string, key *rsa.PrivateKey, webhookSecret string) *app {
	if key == nil {
		k, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			invalidUse("CreateApp: %v", err)
		}
		key = k
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	a := &app{App: App{id, slug, text, webhookSecret, g.core.NextID()}, key: &key.PublicKey}
	g.apps[id] = a
	g.accountOf(slug+"[bot]", "Bot")
	return a
}

// ReplaceKey makes privateKeyPEM the App's only private key: JWTs signed with
// the one before are refused. Tokens minted with that one work until they end.
func (g *GitHub) ReplaceKey(appID int64, privateKeyPEM string) {
	key := parseKey(privateKeyPEM)
	defer g.lock()()
	a := g.apps[appID]
	if a == nil || key == nil {
		invalidUse("ReplaceKey: no app %d, or no key", appID)
	}
	a.key, a.PrivateKeyPEM = &key.PublicKey, privateKeyPEM
}

func parseKey(s string) *rsa.PrivateKey {
	if s == "" {
		return nil
	}
	block, _ := pem.Decode([]byte(s))
	if block == nil {
		invalidUse("CreateApp: the private key is not PEM")
	}
	if k, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return k
	}
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		invalidUse("CreateApp: %v", err)
	}
	priv, isRSA := k.(*rsa.PrivateKey)
	if !isRSA {
		invalidUse("CreateApp: the private key is not RSA")
	}
	return priv
}

// Install installs the App on an account and returns the installation's ID. repos are names of the
// account's repositories, with or without the owner; none means all repositories, later ones
// included. The installation has the permissions Plumbline asks for; SetPermissions changes them.
func (g *GitHub) Install(appID int64, owner string, repos ...string) int64 {
	defer g.lock()()
	a := g.apps[appID]
	if a == nil {
		invalidUse("Install: no app %d", appID)
	}
	in := &installation{
		id: g.core.NextID(), app: a, account: g.accountOf(owner, "Organization"),
		all: len(repos) == 0, repos: map[int64]bool{}, created: g.now(),
		permissions: map[string]string{
			"checks": "write", "contents": "read", "issues": "write", "members": "read",
			"merge_queues": "read", "metadata": "read", "pull_requests": "write",
		},
	}
	for _, name := range repos {
		in.repos[g.mustRepo(owner+"/"+name[strings.LastIndex(name, "/")+1:]).id] = true
	}
	g.installs[in.id] = in
	g.core.Notify()
	return in.id
}

// SetPermissions replaces the permissions of an installation; tokens minted before lose them too.
func (g *GitHub) SetPermissions(installationID int64, permissions map[string]string) {
	defer g.lock()()
	g.mustInstallation(installationID).permissions = maps.Clone(permissions)
}

// SetInstalledRepos replaces the repositories of an installation. A token that
// was minted before does not see one again that was taken away and is back.
func (g *GitHub) SetInstalledRepos(installationID int64, repos ...string) {
	defer g.lock()()
	in := g.mustInstallation(installationID)
	in.all, in.repos = false, map[int64]bool{}
	for _, name := range repos {
		in.repos[g.mustRepo(name).id] = true
	}
	for _, t := range g.tokens {
		if t.in == in {
			maps.DeleteFunc(t.repos, func(id int64, _ bool) bool { return !in.repos[id] })
		}
	}
}

// Suspend suspends an installation or ends the suspension. GitHub does not document whether
// earlier tokens work again: here they do not.
func (g *GitHub) Suspend(installationID int64, suspended bool) {
	defer g.lock()()
	in := g.mustInstallation(installationID)
	in.suspended = suspended
	for _, t := range g.tokens {
		t.suspended = t.suspended || t.in == in && suspended
	}
}

// Uninstall removes the installation; its tokens stop working.
func (g *GitHub) Uninstall(installationID int64) {
	defer g.lock()()
	g.mustInstallation(installationID)
	delete(g.installs, installationID)
}

// RevokeTokens makes every installation token minted so far unknown.
func (g *GitHub) RevokeTokens() {
	defer g.lock()()
	maps.DeleteFunc(g.tokens, func(_ string, t *token) bool { return t.user == nil })
}

func (g *GitHub) mustInstallation(id int64) *installation {
	in := g.installs[id]
	if in == nil {
		invalidUse("no installation %d", id)
	}
	return in
}

// holds reports whether the installation covers the repository.
func (in *installation) holds(r *repo) bool {
	return r.owner == in.account && (in.all || in.repos[r.id])
}

// installationFor finds the App's installation that covers the repository;
// appID 0 takes the oldest of any App. The caller holds mu.
func (g *GitHub) installationFor(appID int64, r *repo) *installation {
	for _, id := range slices.Sorted(maps.Keys(g.installs)) {
		in := g.installs[id]
		if in.holds(r) && (appID == 0 || in.app.ID == appID) {
			return in
		}
	}
	return nil
}
