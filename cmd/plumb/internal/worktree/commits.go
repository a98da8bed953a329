// SPDX-License-Identifier: Apache-2.0

package worktree

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

const (
	headsPrefix = "refs/heads/"
	tagsPrefix  = "refs/tags/"
)

// Commit is what Git records of a commit.
type Commit struct {
	SHA string
	// AuthorName and AuthorEmail are as they are written in it.
	AuthorName, AuthorEmail string
	// Message is all of it.
	Message string
}

// Commit returns the commit that a revision names.
func (t *Tree) Commit(ctx context.Context, revision string) (Commit, error) {
	sha, err := t.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if err != nil {
		return Commit{}, fmt.Errorf("the clone has no commit %s", revision)
	}
	sha = strings.TrimSpace(sha)
	said, err := t.git(ctx, "log", "-1", "--no-show-signature", "--encoding=UTF-8", "--format=%an%x00%ae%x00%B", sha)
	if err != nil {
		return Commit{}, err
	}
	name, rest, _ := strings.Cut(said, "\x00")
	email, message, _ := strings.Cut(rest, "\x00")
	return Commit{SHA: sha, AuthorName: name, AuthorEmail: email, Message: strings.TrimRight(message, "\n")}, nil
}

// Has reports whether the clone has a commit.
func (t *Tree) Has(ctx context.Context, sha string) bool {
	_, err := t.git(ctx, "cat-file", "-e", sha+"^{commit}")
	return err == nil
}

// Tip returns the commit of a branch: of the remote's branch at the last fetch, else of the local
// one. It returns false if the clone knows no such branch.
func (t *Tree) Tip(ctx context.Context, branch string) (sha string, found bool) {
	candidates := []string{headsPrefix + branch}
	if remote, err := t.remote(ctx); err == nil {
		candidates = []string{"refs/remotes/" + remote + "/" + branch, headsPrefix + branch}
	}
	for _, ref := range candidates {
		sha, err := t.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
		if err == nil {
			return strings.TrimSpace(sha), true
		}
	}
	return "", false
}

// Published returns the commit of the remote's branch at the last fetch; false if there was no such
// branch.
func (t *Tree) Published(ctx context.Context, branch string) (sha string, found bool) {
	remote, err := t.remote(ctx)
	if err != nil {
		return "", false
	}
	sha, err = t.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options",
		"refs/remotes/"+remote+"/"+branch+"^{commit}")
	return strings.TrimSpace(sha), err == nil
}

// Parent returns the first parent of a commit; false if it has none here.
func (t *Tree) Parent(ctx context.Context, sha string) (parent string, found bool) {
	parent, err := t.git(ctx, "rev-parse", "--verify", "--quiet", sha+"^1^{commit}")
	return strings.TrimSpace(parent), err == nil
}

// DefaultBranch returns the remote's default branch, as the clone knows it, else the one of main
// and master that exists.
func (t *Tree) DefaultBranch(ctx context.Context) string {
	if remote, err := t.remote(ctx); err == nil {
		prefix := "refs/remotes/" + remote + "/"
		if ref, err := t.git(ctx, "symbolic-ref", "--quiet", prefix+"HEAD"); err == nil {
			return strings.TrimPrefix(strings.TrimSpace(ref), prefix)
		}
	}
	for _, name := range []string{"main", "master"} {
		if _, found := t.Tip(ctx, name); found {
			return name
		}
	}
	return "main"
}

// Branches returns the names of the branches, of the clone and of the remote.
func (t *Tree) Branches(ctx context.Context) ([]string, error) {
	prefixes := []string{headsPrefix}
	if remote, err := t.remote(ctx); err == nil {
		prefixes = append(prefixes, "refs/remotes/"+remote+"/")
	}
	return t.refs(ctx, prefixes...)
}

// Tags returns the names of the tags.
func (t *Tree) Tags(ctx context.Context) ([]string, error) { return t.refs(ctx, tagsPrefix) }

// refs returns the refs below prefixes, without these, each name once.
func (t *Tree) refs(ctx context.Context, prefixes ...string) ([]string, error) {
	said, err := t.git(ctx, append([]string{"for-each-ref", "--format=%(refname)"}, prefixes...)...)
	if err != nil {
		return nil, err
	}
	var names []string
	for ref := range strings.FieldsSeq(said) {
		for _, prefix := range prefixes {
			name, found := strings.CutPrefix(ref, prefix)
			if found && name != "HEAD" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// CheckRef reports whether Git accepts a name as that of a branch or tag.
func (t *Tree) CheckRef(ctx context.Context, prefix, name string) error {
	if _, err := t.git(ctx, "check-ref-format", prefix+name); err != nil || strings.HasPrefix(name, "-") {
		return fmt.Errorf("%q is not a name that Git accepts for a branch or tag", name)
	}
	return nil
}

// shallow reports whether the clone has a part of the history only.
func (t *Tree) shallow(ctx context.Context) bool {
	answer, err := t.git(ctx, "rev-parse", "--is-shallow-repository")
	return err == nil && strings.TrimSpace(answer) == "true"
}
