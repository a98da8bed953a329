// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// delivery is one that was built, and how it is sent to a receiver.
type delivery struct {
	id   string
	send func(ctx context.Context, url string) (code int)
}

// event makes something happen in a random repository, and delivers it to the next receiver, once.
// A delivery of GitHub that fails is requested again by Plumbline, one of GitLab by Await, as a
// user does.
func (b *Beside) event(ctx context.Context) {
	repo := b.repos[rand.IntN(len(b.repos))] // #nosec G404 -- a choice of a test
	var d delivery
	var sha, pipeline string
	switch kind := rand.IntN(10); { // #nosec G404 -- a choice of a test
	case kind < 5:
		sha, d, pipeline = b.commitTo(repo, "main", change()), b.pushed(repo), "build"
	case kind < 8 || len(b.pulls) == 0:
		branch := fmt.Sprint("change-", len(b.pulls))
		of := pull{repo: repo, sha: b.commitTo(repo, branch, change())}
		of.number, d = b.opened(repo, branch)
		b.pulls = append(b.pulls, of)
		sha, pipeline = of.sha, "pull"
	default:
		of := b.pulls[rand.IntN(len(b.pulls))] // #nosec G404 -- a choice of a test
		repo, sha, d, pipeline = of.repo, of.sha, b.commented(of, "/test pull"), "pull"
	}
	b.mu.Lock()
	if b.commits[sha] == nil {
		b.commits[sha] = &commit{repo: repo, pipeline: pipeline}
	}
	b.commits[sha].deliveries = append(b.commits[sha].deliveries, d.id)
	b.mu.Unlock()
	if code := d.send(ctx, b.receiver()); code/100 != 2 && repo.onLab {
		b.refused = append(b.refused, d)
	}
}

// receiver returns the URL of the next receiver.
func (b *Beside) receiver() string { return b.receivers[b.next.Add(1)%int64(len(b.receivers))].URL }

func change() map[string]string {
	return map[string]string{"README.md": fmt.Sprint(time.Now().UnixNano())}
}

// commitTo pushes a commit to a branch, without a delivery.
func (b *Beside) commitTo(repo repository, branch string, files map[string]string) (sha string) {
	if repo.onLab {
		return b.lab.Commit(repo.name, branch, gitlab.Change{Files: files, Message: "change", Author: author})
	}
	return b.forge.Commit(repo.name, branch, forge.Change{Files: files, Message: "change", Author: author})
}

func (b *Beside) pushed(repo repository) delivery {
	const ref = "refs/heads/main"
	if repo.onLab {
		return b.ofLab(b.lab.PushDelivery(gitlab.PushEvent{Project: repo.name, Ref: ref}))
	}
	return b.ofHub(b.forge.PushDelivery(forge.PushEvent{Repo: repo.name, Ref: ref, AppID: b.app.ID}))
}

func (b *Beside) opened(repo repository, branch string) (number int, d delivery) {
	if repo.onLab {
		iid := b.lab.OpenMergeRequest(gitlab.NewMergeRequest{
			Target: repo.name, SourceBranch: branch, Author: author, Title: "change",
		})
		return int(iid), b.ofLab(b.lab.MergeRequestDelivery(gitlab.MergeRequestEvent{Project: repo.name, IID: iid}))
	}
	number = b.forge.OpenPullRequest(forge.NewPull{
		Base: repo.name, BaseBranch: "main", HeadBranch: branch, Author: author, Title: "change",
	})
	return number, b.ofHub(b.forge.PullRequestDelivery(forge.PullEvent{
		Repo: repo.name, Number: number, Action: "opened", Sender: author, AppID: b.app.ID,
	}))
}

func (b *Beside) commented(of pull, body string) delivery {
	if of.repo.onLab {
		return b.ofLab(b.lab.NoteDelivery(b.lab.AddNote(of.repo.name, int64(of.number), author, body)))
	}
	id := b.forge.Comment(of.repo.name, of.number, author, body)
	b.gateway.remember(id, author, body)
	return b.ofHub(b.forge.CommentDelivery(forge.CommentEvent{Repo: of.repo.name, ID: id, AppID: b.app.ID}))
}

func (b *Beside) ofHub(d forge.Delivery) delivery {
	return delivery{id: d.ID(), send: func(ctx context.Context, url string) int {
		code, _, _ := b.forge.Deliver(ctx, url, d)
		return code
	}}
}

func (b *Beside) ofLab(d gitlab.Delivery) delivery {
	return delivery{id: d.ID(), send: func(ctx context.Context, url string) int {
		code, _, _ := b.lab.TestHook(ctx, url, d) // also of a webhook that GitLab pauses
		return code
	}}
}

// Events makes events happen in random repositories, one each pace, until ctx ends.
func (b *Beside) Events(ctx context.Context, pace time.Duration) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			b.event(context.WithoutCancel(ctx))
		}
	}
}

// KillReceiver kills one receiver and starts it again after a while.
func (b *Beside) KillReceiver(ctx context.Context, after time.Duration) error {
	if err := b.receivers[0].Kill(); err != nil {
		return err
	}
	return startAfter(ctx, b.receivers[0].Part, after)
}

// KillController kills the controller of Pipelines-as-Code. It must have nothing in flight: what it
// has accepted and not processed it would lose.
func (b *Beside) KillController() error { return b.controller.Kill() }

// StartController starts the controller of Pipelines-as-Code after a while.
func (b *Beside) StartController(ctx context.Context, after time.Duration) error {
	return startAfter(ctx, b.controller, after)
}

func startAfter(ctx context.Context, part *cluster.Part, after time.Duration) error {
	select {
	case <-time.After(after):
	case <-ctx.Done():
	}
	return part.Start(ctx)
}
