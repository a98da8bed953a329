// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/plumbline-ci/plumbline/pkg/pipeline/glob"
)

// TokenScope says which other repositories of an App's installation the tokens of runs may reach at
// GitHub.
type TokenScope struct {
	// Lists allows the lists of Repositories (settings.github_app_token_scope_repos). A list of the
	// administrator allows them as well.
	Lists bool
	// Extra are repositories that the tokens of all Repositories may read.
	Extra []RepositoryGlob
}

// RefusesLists reports whether Repositories may not list other repositories.
func (s TokenScope) RefusesLists() bool { return !s.Lists && len(s.Extra) == 0 }

// RepositoryGlob is a glob of "owner/repo" in lower case.
type RepositoryGlob struct {
	Text string
	glob *glob.Glob
}

// NewRepositoryGlob compiles a glob. GitHub ignores the case of names.
func NewRepositoryGlob(text string) (RepositoryGlob, error) {
	compiled, err := glob.Compile("", strings.ToLower(text))
	return RepositoryGlob{text, compiled}, err
}

// Match reports whether the glob matches a repository, "owner/repo".
func (g RepositoryGlob) Match(repository string) bool {
	return g.glob.MatchApart(strings.ToLower(repository))
}

// One reports whether the glob is the name of one repository.
func (g RepositoryGlob) One() bool { return !strings.ContainsAny(g.Text, `*?[{\`) }

// AtGitHub returns "owner/repo", in lower case, of a canonical URL at the App's GitHub. A URL with
// another scheme is not there: it has a RepositoryClaim of its own.
func (c *Config) AtGitHub(canonical string) (repository string, found bool) {
	return strings.CutPrefix(canonical, c.GitHubURL+"/")
}

const extraForm = `repositories and globs, separated by commas, like "acme/tasks, acme/lib-*"`

// tokenScope reads both keys.
func (p *parser) tokenScope(previous TokenScope) TokenScope {
	s := TokenScope{Lists: !p.boolean(keyTokenScoped, true, !previous.Lists)}
	v, _ := p.value(keyExtraRepos)
	for _, text := range strings.FieldsFunc(v, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		extra, err := NewRepositoryGlob(text)
		if err != nil || strings.Count(text, "/") != 1 {
			p.bad(keyExtraRepos, strconv.Quote(text)+` is not "owner/repo" or a glob of it`, extraForm)
			s.Extra = previous.Extra
			return s
		}
		s.Extra = append(s.Extra, extra)
	}
	return s
}
