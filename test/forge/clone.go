// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// uploadPack is the service a client asks for that only reads.
const uploadPack = "git-upload-pack"

// infoRefs is the first request of every fetch and clone: a caller who may make it may clone. It
// is all that git ls-remote needs; no packs are served.
func infoRefs(c *call) answer {
	if service := c.r.URL.Query().Get("service"); service != uploadPack {
		return gitText(http.StatusForbidden, "this forge serves "+uploadPack+" only")
	}
	var b strings.Builder
	b.WriteString(pktLine("# service="+uploadPack+"\n") + "0000")
	refs := map[string]string{}
	for name, sha := range c.repo.branches {
		refs["refs/heads/"+name] = sha
	}
	for name, sha := range c.repo.tags {
		refs["refs/tags/"+name] = sha
	}
	capabilities := "\x00symref=HEAD:refs/heads/" + c.repo.defaultBranch + " agent=forge"
	line := func(sha, name string) {
		b.WriteString(pktLine(sha + " " + name + capabilities + "\n"))
		capabilities = "" // on the first line only
	}
	if head := c.repo.branches[c.repo.defaultBranch]; head != "" {
		line(head, "HEAD")
	}
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		line(refs[name], name)
	}
	if len(refs) == 0 {
		line(zeroSHA, "capabilities^{}")
	}
	b.WriteString("0000")
	a := answer{Status: http.StatusOK, Raw: []byte(b.String())}
	return a.With("Content-Type", "application/x-"+uploadPack+"-advertisement").With("Cache-Control", "no-cache")
}

// pktLine is git's framing: four hexadecimal digits that count themselves.
func pktLine(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// gitText is how the git side refuses: text, not JSON.
func gitText(status int, text string) answer {
	return answer{Status: status, Raw: []byte(text + "\n")}.With("Content-Type", "text/plain")
}

// askForPassword makes git look for credentials.
func askForPassword() answer {
	return gitText(http.StatusUnauthorized, "Authentication failed").With("WWW-Authenticate", `Basic realm="GitHub"`)
}

// authenticateGit takes the token where git sends it: as the password of any user. A call without
// one goes on without a user.
func (c *call) authenticateGit() {
	_, password, given := c.r.BasicAuth()
	if !given {
		return
	}
	t := c.g.valid(password)
	if t == nil {
		panic(traffic.Refuse(askForPassword()))
	}
	c.token, c.app = t, t.in.app
}

// authorizeGit decides whether the caller may read the repository's content.
// What a caller may not know of is asked for a password or not there.
func (c *call) authorizeGit() {
	name := strings.TrimSuffix(c.r.PathValue("repo"), ".git")
	r := c.g.repos[key(c.r.PathValue("owner")+"/"+name)]
	switch {
	case r != nil && !r.private:
	case c.token == nil:
		panic(traffic.Refuse(askForPassword()))
	case r == nil, !c.token.covers(r):
		panic(traffic.Refuse(gitText(http.StatusNotFound, "Repository not found.")))
	case c.token.in.suspended, !c.token.may(c.rt.permission, c.rt.level):
		panic(traffic.Refuse(gitText(http.StatusForbidden, "Write access to repository not granted.")))
	}
	c.repo = r
}
