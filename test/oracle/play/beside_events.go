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
)

// settled bounds how long the last deliveries may take, redeliveries included.
const settled = 5 * time.Minute

// Push pushes a commit to a repository. GitHub delivers it to the next receiver, once.
func (b *Beside) Push(ctx context.Context, n int) {
	repo := b.repos[n]
	sha := b.forge.Commit(repo, "main", forge.Change{
		Files: map[string]string{"README.md": fmt.Sprint(time.Now().UnixNano())}, Message: "change", Author: author,
	})
	d := b.forge.PushDelivery(forge.PushEvent{Repo: repo, Ref: "refs/heads/main", AppID: b.app.ID})
	b.mu.Lock()
	b.pushes[sha] = push{repo: repo, guid: d.GUID}
	b.mu.Unlock()
	hook := b.receivers[b.next.Add(1)%int64(len(b.receivers))].URL
	_, _, _ = b.forge.Deliver(ctx, hook, d) // what fails is requested again
}

// Events pushes to random repositories, one each pace, until ctx ends. It returns how many.
func (b *Beside) Events(ctx context.Context, pace time.Duration) (n int) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for ; ; n++ {
		select {
		case <-ctx.Done():
			return n
		case <-tick.C:
			b.Push(context.WithoutCancel(ctx), rand.IntN(len(b.repos))) // #nosec G404 -- a choice of a test
		}
	}
}

// Outcome is what came of all pushes.
type Outcome struct {
	Pushes, Ours, Theirs, Refused, Redelivered int
	// Again are the deliveries that Pipelines-as-Code has run more than once, because the receiver
	// that forwarded them was killed before it answered. Pipelines-as-Code does not recognise a
	// delivery that is sent again.
	Again int
}

func (o Outcome) String() string {
	return fmt.Sprintf(
		"%d pushes: %d run by Plumbline, %d by Pipelines-as-Code (%d of them again, as the answer to their "+
			"delivery was lost); %d attempts were not accepted, %d were redeliveries",
		o.Pushes,
		o.Ours,
		o.Theirs,
		o.Again,
		o.Refused,
		o.Redelivered,
	)
}

// Await waits until each push has run and is reported, and returns what contradicts that each ran
// exactly once.
func (b *Beside) Await(ctx context.Context) (o Outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, settled)
	defer cancel()
	err = cluster.Poll(ctx, time.Second, func() error {
		o, err = b.judge(ctx)
		return err
	})
	return o, err
}

// judge compares the PipelineRuns and the checks with the pushes.
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
	for _, d := range b.forge.Deliveries() {
		lost[d.GUID] = lost[d.GUID] || d.StatusCode == 0
		if d.StatusCode/100 != 2 {
			o.Refused++
		}
		if d.Redelivery {
			o.Redelivered++
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for sha, p := range b.pushes {
		o.Pushes++
		if n := b.accepted[p.guid]; n > 1 && lost[p.guid] && len(runs[sha]) == n {
			o.Again += n - 1
		} else if len(runs[sha]) != 1 {
			add("%s of %s (delivery %s) has %d PipelineRuns", sha, p.repo, p.guid, len(runs[sha]))
			continue
		}
		for _, run := range runs[sha] {
			if _, ours := run.GetLabels()[plumbline.InstallationLabel]; ours {
				o.Ours++
			} else {
				o.Theirs++
			}
			if problem := mixed(run); problem != "" {
				add("PipelineRun %s/%s %s", run.GetNamespace(), run.GetName(), problem)
			}
		}
		if problem := b.untrue(p.repo, sha, len(runs[sha])); problem != "" {
			add("%s of %s: %s", sha, p.repo, problem)
		}
	}
	if len(list.Items) != len(b.pushes)+o.Again {
		add("%d PipelineRuns for %d pushes", len(list.Items), len(b.pushes))
	}
	return o, errors.Join(problems[:min(len(problems), 20)]...)
}

// mixed returns what one product has written to a PipelineRun of the other one, "" for nothing.
func mixed(run unstructured.Unstructured) string {
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
	if _, state := run.GetAnnotations()[pipelinesascode.State]; state || run.GetLabels()[pipelinesascode.State] != "" {
		return "has a state"
	}
	return ""
}

// untrue returns why the checks of a commit do not say how its PipelineRuns ended, "" if they do.
func (b *Beside) untrue(repo, sha string, runs int) string {
	checks := b.forge.ChecksFor(repo, sha)
	want := "success"
	if fails(repo) {
		want = "failure"
	}
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
	return restart(ctx, b.original, after)
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
