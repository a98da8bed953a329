// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/delivery"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/settings"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/worktree"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
)

// describe returns the event that the flags and the working tree describe.
func (w *planner) describe(
	ctx context.Context, tree *worktree.Tree, files *settings.Settings,
) (delivery.Described, error) {
	e := delivery.Described{
		Kind: w.kind(), SHA: tree.Head.SHA, Message: tree.Head.Message, Sender: w.causer(tree), Author: w.author,
		DefaultBranch: tree.DefaultBranch(ctx), Number: w.pullNumber(), Labels: w.labels,
		Comment: w.comment(), Key: cmp.Or(w.key, delivery.Key),
	}
	if w.column != nil && e.Kind != delivery.Labeled {
		e.Labels = nil
	}
	if err := w.locate(ctx, tree, files, &e); err != nil {
		return e, err
	}
	if w.onDefaultBranch(tree, e) {
		w.push, e.Kind = currentBranch, delivery.Pushed
		w.note("%s is the default branch, so the event is a push to it (--head or --base describe a pull request)",
			tree.Branch)
	}
	if e.Kind.OfPull() {
		return e, w.describePull(ctx, tree, &e)
	}
	return e, w.describePush(ctx, tree, &e)
}

// comment returns the text of the comment.
func (w *planner) comment() string {
	if len(w.comments) == 0 {
		return matrixComment
	}
	return w.comments[0]
}

// causer returns the user who causes the event. The author of a pull request opens it.
func (w *planner) causer(tree *worktree.Tree) string {
	if w.kind() == delivery.Opened {
		return cmp.Or(w.sender, w.author, login(tree.Head))
	}
	return cmp.Or(w.sender, login(tree.Head))
}

func (w *planner) kind() delivery.Kind {
	switch {
	case w.column != nil:
		return *w.column
	case w.given("push"), w.given("incoming"):
		return delivery.Pushed
	case w.given("tag"):
		return delivery.Tagged
	case w.given("label"):
		return delivery.Labeled
	case w.given("comment"):
		return delivery.Commented
	}
	return delivery.Opened
}

// locate says which repository the event is of. A pull request may come from a clone of a fork; the
// Repository is then that of what it was forked from.
func (w *planner) locate(
	ctx context.Context, tree *worktree.Tree, files *settings.Settings, e *delivery.Described,
) error {
	served := ""
	if files.Repository != nil {
		served = strings.TrimSuffix(strings.TrimRight(files.Repository.Spec.URL, "/"), ".git")
	}
	own, err := w.own(ctx, tree)
	if err != nil && served == "" {
		return err
	}
	e.URL, e.HeadURL = cmp.Or(served, own), cmp.Or(own, served)
	if served != "" && v1alpha1.SameURL(e.URL, e.HeadURL) {
		e.HeadURL = e.URL
	}
	return w.identify(files, e)
}

// identify says which service the repository is at.
func (w *planner) identify(files *settings.Settings, e *delivery.Described) error {
	u, err := url.Parse(e.URL)
	if err != nil || provider.Host(u) == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%q is not the web URL of a repository: it is like https://github.com/owner/name",
			withoutUser(e.URL))
	}
	if e.Service, err = delivery.For(cmp.Or(w.service, typed(files)), u.Host); err != nil {
		return err
	}
	at := strings.Trim(u.Path, "/")
	if !strings.Contains(at, "/") || e.Service == github.Name && path.Dir(path.Dir(at)) != "." {
		return fmt.Errorf("%s is no repository of %s: say with --url and --provider which one is meant", e.URL, e.Service)
	}
	return nil
}

// typed is the service that the Repository names.
func typed(files *settings.Settings) string {
	if files.Repository == nil || files.Repository.Spec.GitProvider == nil {
		return ""
	}
	return files.Repository.Spec.GitProvider.Type
}

// own is the web URL of this clone's repository.
func (w *planner) own(ctx context.Context, tree *worktree.Tree) (string, error) {
	if w.url == "" {
		return tree.URL(ctx)
	}
	web, err := worktree.WebURL(w.url)
	if err != nil {
		return "", fmt.Errorf("--url %q %w: it is like https://github.com/owner/name", withoutUser(w.url), err)
	}
	return web, nil
}

var userOfURL = regexp.MustCompile(`://[^/]*@`)

// withoutUser is an address without the user and the password, or token, that it may hold: it is
// shown where CI keeps it.
func withoutUser(address string) string { return userOfURL.ReplaceAllString(address, "://***@") }

// onDefaultBranch reports whether no flag describes the event, and no pull request can come from
// the branch that is checked out.
func (w *planner) onDefaultBranch(tree *worktree.Tree, e delivery.Described) bool {
	return e.Kind == delivery.Opened && w.column == nil && w.anyGiven("base", "head", "author", "number") == "" &&
		tree.Branch == e.DefaultBranch && e.HeadURL == e.URL
}

func (w *planner) describePull(ctx context.Context, tree *worktree.Tree, e *delivery.Described) error {
	e.Base, e.Head = cmp.Or(w.base, e.DefaultBranch), cmp.Or(w.head, tree.Branch)
	if e.Head == "" {
		return errors.New(
			"no branch is checked out (HEAD is detached), so that nothing says which one the pull request comes from: say it with --head, or describe a push with --push=main",
		)
	}
	if e.Head == e.Base && e.HeadURL == e.URL {
		return fmt.Errorf(
			"the branch %s is the one that the pull request would go to: check another branch out, or name it with --head, or the target with --base; --push describes a push",
			e.Head,
		)
	}
	for _, branch := range []string{e.Base, e.Head} {
		if err := tree.CheckRef(ctx, "refs/heads/", branch); err != nil {
			return err
		}
	}
	return nil
}

// describePush says what is pushed.
func (w *planner) describePush(ctx context.Context, tree *worktree.Tree, e *delivery.Described) error {
	if e.HeadURL != e.URL {
		return fmt.Errorf("the event would be about %s, and the Repository is of %s: give the Repository of the event's URL",
			e.HeadURL, e.URL)
	}
	if e.Kind == delivery.Tagged {
		e.Base = cmp.Or(w.tag, matrixTag)
		return tree.CheckRef(ctx, "refs/tags/", e.Base)
	}
	e.Base = w.push
	if w.incoming != "" {
		e.Base = cmp.Or(w.push, tree.Branch)
	}
	if w.column != nil {
		e.Base = cmp.Or(w.push, e.DefaultBranch)
	}
	if w.push == currentBranch {
		e.Base = tree.Branch
	}
	if e.Base == "" {
		return errors.New("no branch is checked out (HEAD is detached): say which one is pushed to, e.g. --push=main")
	}
	if err := tree.CheckRef(ctx, "refs/heads/", e.Base); err != nil {
		return err
	}
	return w.describeBefore(ctx, tree, e)
}

// describeBefore says what the branch was at: what is known of the remote's, else of this clone's
// own if another one is checked out. Where nothing is new, the last commit is, or what is not
// committed yet.
func (w *planner) describeBefore(ctx context.Context, tree *worktree.Tree, e *delivery.Described) error {
	tip, found := tree.Published(ctx, e.Base)
	if !found && e.Base != tree.Branch {
		tip, found = tree.Tip(ctx, e.Base)
	}
	switch {
	case found && tip != tree.Head.SHA:
		e.Before = tip
		return nil
	case !found && e.Base != e.DefaultBranch:
		return nil // a new branch
	}
	dirty, err := tree.Dirty(ctx)
	if err != nil {
		return err
	}
	if e.Before = tree.Head.SHA; !dirty {
		e.Before, _ = tree.Parent(ctx, tree.Head.SHA)
	}
	return nil
}

// noreply are GitHub's addresses that hide the author's own: 1234+login@users.noreply.github.com.
var noreply = regexp.MustCompile(`^(?:[0-9]+\+)?([^@]+)@users\.noreply\.`)

var notInLogin = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// login makes a login of who wrote a commit: Git does not know the one at the service.
func login(c worktree.Commit) string {
	if found := noreply.FindStringSubmatch(c.AuthorEmail); found != nil {
		return found[1]
	}
	local, _, _ := strings.Cut(c.AuthorEmail, "@")
	return cmp.Or(strings.Trim(notInLogin.ReplaceAllString(local, "-"), "-."), "author")
}
