// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
	"github.com/plumbline-ci/plumbline/test/installation"
)

const (
	secretName    = "app" // of the Secret that the Repository names
	webhookSecret = "the-secret-of-the-demo"
	branch        = "topic" // of the one pull request or merge request
	author        = "dev"
)

// services are the Git services that the acts can be played on.
var services = map[string]func() *gitService{"github": onGitHub, "gitlab": onGitLab}

// gitService is a Git service with the one repository of the demo, and what it calls things.
type gitService struct {
	forge interface {
		Start() error
		Close() error
		URL() string
	}
	// event is what starts a pipeline.
	event string
	// check is what shows a pipeline's end, checks several, failed its state if that is bad.
	check, checks, failed string
	// mark is the annotation of a PipelineRun that tells of its check.
	mark string
	// create makes the repository and says what an installation, a Repository and its Secret (if
	// any) need to know of it.
	create func(*installation.Options) (pacv1alpha1.RepositorySpec, map[string]string)
	// change commits to the branch and delivers the event, and returns what it was answered with. The
	// first change opens the pull request.
	change func(ctx context.Context, receiver string, c forge.Change) (sha string, status int, body []byte, err error)
	// comment writes on the pull request as its author, and delivers the comment.
	comment func(ctx context.Context, receiver, body string) (status int, answer []byte, err error)
	// comments are the texts on the pull request.
	comments func() []string
	current  func(sha, name string) verdict
	writes   func(sha, name string) []write
}

// verdict is what a check shows.
type verdict struct {
	ended              bool
	state, title, text string
}

// write is one call that changed a check, and what it asked for.
type write struct{ method, path, state, says string }

// reply returns the lines of the comment in which Plumbline answers commands.
func (g *gitService) reply() []string {
	for _, text := range g.comments() {
		if answer, ours := strings.CutPrefix(text, status.ReplyMark); ours {
			return strings.Split(strings.TrimSpace(answer), "\n")
		}
	}
	return nil
}

func onGitHub() *gitService {
	const repository = "acme/app"
	github := forge.New(forge.Options{RefuseEarlyConclusion: true})
	var number int
	return &gitService{
		forge: github, event: "pull request", check: "check", checks: "checks", failed: "failure",
		mark: pipelinesascode.CheckRunID,
		create: func(o *installation.Options) (pacv1alpha1.RepositorySpec, map[string]string) {
			o.Forge, o.App = github, github.CreateApp(1, "plumbline", "", webhookSecret)
			repo := github.CreateRepo("acme", "app", forge.RepoOptions{})
			github.Commit(repository, "main", forge.Change{Files: map[string]string{"README.md": "the demo"}})
			github.SetCollaborator(repository, author, "write")
			github.Install(o.App.ID, "acme", repository)
			return pacv1alpha1.RepositorySpec{URL: repo.HTMLURL}, nil
		},
		change: func(ctx context.Context, receiver string, c forge.Change) (string, int, []byte, error) {
			c.Author = author
			sha, action := github.Commit(repository, branch, c), "synchronize"
			if number == 0 {
				action = "opened"
				number = github.OpenPullRequest(forge.NewPull{Base: repository, HeadBranch: branch, Author: author})
			}
			status, body, err := github.Deliver(ctx, receiver,
				github.PullRequestDelivery(forge.PullEvent{Repo: repository, Number: number, Action: action}))
			return sha, status, body, err
		},
		comment: func(ctx context.Context, receiver, body string) (int, []byte, error) {
			return github.Deliver(ctx, receiver, github.CommentDelivery(forge.CommentEvent{
				Repo: repository, ID: github.Comment(repository, number, author, body),
			}))
		},
		comments: func() (texts []string) {
			for _, c := range github.Comments(repository, number) {
				texts = append(texts, c.Body)
			}
			return texts
		},
		current: func(sha, name string) verdict {
			c, _ := github.Current(repository, sha, name)
			return verdict{ended: c.Status == "completed", state: c.Conclusion, title: c.Title, text: c.Text + c.Summary}
		},
		writes: func(sha, name string) (out []write) {
			for _, w := range github.WritesForCheck(repository, sha, name) {
				out = append(out, write{
					w.Method, w.Path, w.Conclusion, fmt.Sprintf("status=%s conclusion=%s", w.CheckStatus, w.Conclusion),
				})
			}
			return out
		},
	}
}

func onGitLab() *gitService {
	const project = "acme/team/app"
	lab := gitlab.New(gitlab.Options{})
	var request int64
	return &gitService{
		forge: lab, event: "merge request", check: "commit status", checks: "commit statuses",
		failed: "failed", mark: pipelinesascode.GitLabPipelineID,
		create: func(*installation.Options) (pacv1alpha1.RepositorySpec, map[string]string) {
			made := lab.CreateProject(project, gitlab.ProjectOptions{Unprotected: true})
			lab.Commit(project, "main", gitlab.Change{Files: map[string]string{"README.md": "the demo"}})
			lab.AddUser(author)
			lab.SetMember(project, author, gitlab.Developer)
			lab.AddHook(project, lab.URL(), webhookSecret)
			named := &pacv1alpha1.Secret{Name: secretName}
			return pacv1alpha1.RepositorySpec{
					URL: made.WebURL, GitProvider: &pacv1alpha1.GitProvider{Type: "gitlab", Secret: named, WebhookSecret: named},
				},
				map[string]string{
					"provider.token": lab.CreateToken(gitlab.NewToken{Project: project}).Value, "webhook.secret": webhookSecret,
				}
		},
		change: func(ctx context.Context, receiver string, c forge.Change) (string, int, []byte, error) {
			c.Author = author
			sha := lab.Commit(project, branch, c)
			if request == 0 {
				request = lab.OpenMergeRequest(gitlab.NewMergeRequest{
					Target: project, SourceBranch: branch, Author: author, Title: "The demo",
				})
			}
			status, body, err := lab.Deliver(ctx, receiver,
				lab.MergeRequestDelivery(gitlab.MergeRequestEvent{Project: project, IID: request}))
			return sha, status, body, err
		},
		comment: func(ctx context.Context, receiver, body string) (int, []byte, error) {
			return lab.Deliver(ctx, receiver, lab.NoteDelivery(lab.AddNote(project, request, author, body)))
		},
		comments: func() (texts []string) {
			for _, n := range lab.Notes(project, request) {
				texts = append(texts, n.Body)
			}
			return texts
		},
		current: func(sha, name string) verdict {
			s, _ := lab.Current(project, sha, name)
			return verdict{ended: !s.FinishedAt.IsZero(), state: s.State, title: s.Description}
		},
		writes: func(sha, name string) (out []write) {
			for _, w := range lab.WritesForStatus(project, sha, name) {
				out = append(out, write{w.Method, w.Path, w.State, "state=" + w.State})
			}
			return out
		},
	}
}
