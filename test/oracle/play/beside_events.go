// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// settled bounds how long the last deliveries may take, redeliveries included.
const settled = 5 * time.Minute

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

// Outcome is what came of all events.
type Outcome struct {
	Events, Ours, Theirs, Refused, Redelivered int
	// OfPulls are those of pull requests, comments included. OnLab are those of GitLab.
	OfPulls, OnLab int
	// Again are the deliveries that Pipelines-as-Code has run more than once, because the receiver
	// that forwarded them was killed before it answered. Pipelines-as-Code does not recognise a
	// delivery that is sent again.
	Again int
}

func (o Outcome) String() string {
	return fmt.Sprintf("%d events (%d of pull requests, %d of GitLab): %d run by Plumbline, %d by Pipelines-as-Code "+
		"(%d of them again, as the answer to their delivery was lost); %d attempts were not accepted, %d were redeliveries",
		o.Events, o.OfPulls, o.OnLab, o.Ours, o.Theirs, o.Again, o.Refused, o.Redelivered)
}

// Await waits until each event has run and is reported, and returns what contradicts that each ran
// exactly once.
func (b *Beside) Await(ctx context.Context) (o Outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, settled)
	defer cancel()
	err = cluster.Poll(ctx, time.Second, func() error {
		b.refused = slices.DeleteFunc(b.refused, func(d delivery) bool { return d.send(ctx, b.receiver())/100 == 2 })
		o, err = b.judge(ctx)
		return err
	})
	return o, err
}

// judge compares the PipelineRuns and the checks with the events.
func (b *Beside) judge(ctx context.Context) (o Outcome, err error) {
	list, err := b.dynamic.Resource(cluster.PipelineRuns()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return o, err
	}
	runs := map[string][]unstructured.Unstructured{}
	for _, run := range list.Items {
		sha := run.GetLabels()[pipelinesascode.SHA]
		runs[sha] = append(runs[sha], run)
	}
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	lost := map[string]bool{} // the answer to an attempt of these deliveries
	attempt := func(id string, code int, again bool) {
		lost[id] = lost[id] || code == 0
		if code/100 != 2 {
			o.Refused++
		}
		if again {
			o.Redelivered++
		}
	}
	for _, d := range b.forge.Deliveries() {
		attempt(d.GUID, d.StatusCode, d.Redelivery)
	}
	for _, d := range b.lab.Deliveries() {
		attempt(d.Key, d.StatusCode, d.Resent)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for sha, c := range b.commits {
		o.Events += len(c.deliveries)
		if c.pipeline == "pull" {
			o.OfPulls += len(c.deliveries)
		}
		if c.repo.onLab {
			o.OnLab += len(c.deliveries)
		}
		again := 0
		for _, guid := range c.deliveries {
			if lost[guid] {
				again += max(0, b.accepted[guid]-1)
			}
		}
		o.Again += again
		if len(runs[sha]) != len(c.deliveries)+again {
			add("%s of %s (deliveries %s) has %d PipelineRuns", sha, c.repo.name, c.deliveries, len(runs[sha]))
			continue
		}
		for _, run := range runs[sha] {
			if _, ours := run.GetLabels()[plumbline.InstallationLabel]; ours {
				o.Ours++
			} else {
				o.Theirs++
			}
			if problem := b.mixed(run); problem != "" {
				add("PipelineRun %s/%s %s", run.GetNamespace(), run.GetName(), problem)
			}
		}
		if problem := b.untrue(sha, c, len(runs[sha])); problem != "" {
			add("%s of %s: %s", sha, c.repo.name, problem)
		}
	}
	if len(list.Items) != o.Events+o.Again {
		add("%d PipelineRuns for %d events", len(list.Items), o.Events)
	}
	return o, errors.Join(problems[:min(len(problems), 20)]...)
}

// mixed returns what one product has written to a PipelineRun of the other one, "" for nothing.
func (b *Beside) mixed(run unstructured.Unstructured) string {
	_, ours := run.GetLabels()[plumbline.InstallationLabel]
	for _, field := range run.GetManagedFields() {
		if theirs := strings.HasPrefix(field.Manager, "pipelines-as-code"); theirs == ours && (theirs ||
			strings.HasPrefix(field.Manager, "plumbline") || field.Manager == "controller") {
			return "was written by " + field.Manager
		}
	}
	if !ours {
		return ""
	}
	for _, finalizer := range run.GetFinalizers() {
		if strings.HasPrefix(finalizer, "pipelinesascode") {
			return "has the finalizer " + finalizer
		}
	}
	if _, state := run.GetAnnotations()[pipelinesascode.State]; state && !b.finished {
		return "has a state"
	}
	return ""
}

// untrue returns why the checks of a commit do not say how its PipelineRuns ended, "" if they do.
func (b *Beside) untrue(sha string, c *commit, runs int) string {
	want := map[bool]string{false: "success", true: "failure"}[fails(c.repo.name)]
	if c.repo.onLab {
		shown, _ := b.lab.Current(c.repo.name, sha, Application+" / "+c.pipeline)
		if (shown.State == "failed") != fails(c.repo.name) || shown.State != "failed" && shown.State != want {
			return fmt.Sprintf("the status of %d runs is %q, want %s", runs, shown.State, want)
		}
		return ""
	}
	checks := b.forge.ChecksFor(c.repo.name, sha)
	other := func(c forge.CheckRun) bool { return c.Conclusion != want }
	if len(checks) == 0 || len(checks) > runs || slices.ContainsFunc(checks, other) {
		return fmt.Sprintf("%d checks of %d runs, want all to say %s: %+v", len(checks), runs, want, checks)
	}
	return ""
}

// KillReceiver kills one receiver and starts it again after a while.
func (b *Beside) KillReceiver(ctx context.Context, after time.Duration) error {
	return restart(ctx, b.receivers[0].Part, after)
}

// KillController kills the controller of Pipelines-as-Code when it has nothing in flight, and
// starts it again after a while. What it has accepted and not processed it would lose.
func (b *Beside) KillController(ctx context.Context, after time.Duration) error {
	return restart(ctx, b.controller, after)
}

func restart(ctx context.Context, part *cluster.Part, after time.Duration) error {
	if err := part.Kill(); err != nil {
		return err
	}
	select {
	case <-time.After(after):
	case <-ctx.Done():
	}
	return part.Start(ctx)
}
