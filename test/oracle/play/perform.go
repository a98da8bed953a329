// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/oracle/scenario"
	"github.com/plumbline-ci/plumbline/test/oracle/verdict"
)

// serving bounds how long a new repository may take until its deliveries are accepted.
const serving = time.Minute

// performance is one scenario on its way.
type performance struct {
	*Stage
	scenario scenario.Scenario
	repo     string
	// head is the repository of the pull request's branch, and pull its number.
	head string
	pull int
	// events are the GitEvents of the acts so far.
	events []string
	shas   map[string]bool
	seen   map[types.UID]int // runs of acts before, and of which, from one
	// asked is how many calls of Pipelines-as-Code were about the repository before the newest
	// delivery, and delivered is when that was.
	asked     int
	delivered time.Time
}

// Play plays a scenario to both sides and returns what each shows after each act. What doubt says
// no to is looked at once more, after nothing has changed for longer: on a busy machine one of them
// may have been about to do something.
func (s *Stage) Play(ctx context.Context, sc scenario.Scenario, doubt func(pac, ours []verdict.Side) bool) (pac,
	ours []verdict.Side, err error) {
	p := &performance{Stage: s, scenario: sc, repo: fullName(sc), shas: map[string]bool{}, seen: map[types.UID]int{}}
	if err := p.prepare(ctx); err != nil {
		return nil, nil, fmt.Errorf("preparing %s: %w", sc.Name(), err)
	}
	for n, act := range sc.Acts {
		if err := p.deliver(ctx, p.happen(n, act)); err != nil {
			return pac, ours, fmt.Errorf("act %d of %s: %w", n+1, sc.Name(), err)
		}
		left, right, err := p.look(ctx, quiet)
		if err == nil && doubt(append(pac, left), append(ours, right)) {
			left, right, err = p.look(ctx, 10*quiet)
		}
		if err != nil {
			return pac, ours, fmt.Errorf("after act %d of %s: %w", n+1, sc.Name(), err)
		}
		pac, ours = append(pac, left), append(ours, right)
		if err := p.remember(ctx, n+1); err != nil {
			return pac, ours, err
		}
	}
	return pac, ours, nil
}

// prepare makes the repository, and a Repository of it on both sides.
func (p *performance) prepare(ctx context.Context) error {
	repo := p.forge.CreateRepo(organisation, p.scenario.Name(), forge.RepoOptions{})
	p.forge.SetCollaborator(p.repo, scenario.Writer, "write")
	p.forge.SetCollaborator(p.repo, scenario.Triager, "triage")
	p.forge.SetCollaborator(p.repo, scenario.Reader, "read")
	first := p.forge.Commit(p.repo, scenario.Main,
		forge.Change{Files: p.scenario.Files(false), Message: "begin", Author: scenario.Owner})
	p.forge.SetBranch(p.repo, scenario.Release, first, scenario.Owner)
	p.head = p.repo
	object := &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: pacv1alpha1.RepositorySpec{URL: repo.HTMLURL},
	}
	if p.scenario.Provenance != "" {
		object.Spec.Settings = &pacv1alpha1.Settings{PipelineRunProvenance: p.scenario.Provenance}
	}
	if p.scenario.Limit > 0 {
		object.Spec.ConcurrencyLimit = &p.scenario.Limit
	}
	for _, side := range []side{p.pac, p.ours} {
		if err := side.cluster.MakeNamespace(ctx, namespaceOf(p.scenario)); err != nil {
			return err
		}
		if _, err := side.plumbline.PipelinesascodeV1alpha1().Repositories(namespaceOf(p.scenario)).Create(ctx, object,
			metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	url, err := v1alpha1.CanonicalURL(repo.HTMLURL)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, serving)
	defer cancel()
	return cluster.Poll(ctx, 100*time.Millisecond, func() error {
		_, err := p.ours.plumbline.PlumblineV1alpha1().RepositoryClaims(p.system).Get(ctx, v1alpha1.ClaimName(url),
			metav1.GetOptions{})
		return err
	})
}

// happen makes an act happen at the forge, and returns what builds its delivery for an App.
func (p *performance) happen(n int, a scenario.Act) func(app int64) forge.Delivery {
	switch a.Kind {
	case scenario.Push:
		p.commit(n, p.repo, a.Branch, a)
		return p.pushed("refs/heads/"+a.Branch, a.By)
	case scenario.Echo:
		return p.pushed("refs/heads/"+scenario.Feature, a.By)
	case scenario.Tag:
		if a.Path != "" {
			p.commit(n, p.repo, scenario.Main, a)
		}
		sha := p.forge.Branches(p.repo)[scenario.Main]
		p.shas[sha] = true
		p.forge.CreateTag(p.repo, a.Branch, sha, a.By)
		return p.pushed("refs/tags/"+a.Branch, a.By)
	case scenario.Comment:
		return p.comment(a)
	case scenario.Open:
		if a.Fork {
			p.head = a.By + "/" + p.scenario.Name()
			p.forge.CreateRepo(a.By, p.scenario.Name(), forge.RepoOptions{ForkOf: p.repo})
		}
		p.commit(n, p.head, scenario.Feature, a)
		p.pull = p.forge.OpenPullRequest(forge.NewPull{
			Base: p.repo, BaseBranch: a.Branch, Head: p.head, HeadBranch: scenario.Feature, Author: a.By,
			Title: "change the thing",
		})
		return p.told(forge.PullEvent{Action: "opened", Sender: a.By})
	case scenario.Sync:
		p.commit(n, p.head, scenario.Feature, a)
		return p.told(forge.PullEvent{Action: "synchronize", Sender: a.By})
	case scenario.Labeled:
		p.forge.LabelPull(p.repo, p.pull, a.Text)
		return p.told(forge.PullEvent{Action: "labeled", Sender: a.By, Label: a.Text})
	case scenario.Closed:
		p.forge.ClosePull(p.repo, p.pull)
		return p.told(forge.PullEvent{Action: "closed", Sender: a.By})
	}
	panic("oracle: no such act: " + string(a.Kind))
}

func (p *performance) commit(n int, repo, branch string, a scenario.Act) {
	files := map[string]string{a.Path: fmt.Sprintf("Change %d.\n", n+1)}
	if branch != scenario.Main && p.scenario.HeadEdits {
		maps.Copy(files, p.scenario.Definitions(true))
	}
	sha := p.forge.Commit(repo, branch, forge.Change{Files: files, Message: a.Message, Author: a.By})
	p.shas[sha] = true
}

func (p *performance) pushed(ref, by string) func(int64) forge.Delivery {
	return func(app int64) forge.Delivery {
		return p.forge.PushDelivery(forge.PushEvent{Repo: p.repo, Ref: ref, AppID: app, Sender: by})
	}
}

func (p *performance) told(e forge.PullEvent) func(int64) forge.Delivery {
	e.Repo, e.Number = p.repo, p.pull
	return func(app int64) forge.Delivery {
		e.AppID = app
		return p.forge.PullRequestDelivery(e)
	}
}

func (p *performance) comment(a scenario.Act) func(int64) forge.Delivery {
	body := strings.ReplaceAll(a.Text, "{sha}", p.forge.Branches(p.head)[scenario.Feature])
	id := p.forge.Comment(p.repo, p.pull, a.By, body)
	p.gateway.remember(id, a.By, body)
	return func(app int64) forge.Delivery {
		return p.forge.CommentDelivery(forge.CommentEvent{Repo: p.repo, ID: id, AppID: app})
	}
}

// recordedAs is in our receiver's answer to what becomes an event.
var recordedAs = regexp.MustCompile(`recorded as ([a-z0-9-]+)`)

// deliver delivers to both. Ours answers 503 until its copy of the Repository's claim is there.
func (p *performance) deliver(ctx context.Context, build func(app int64) forge.Delivery) error {
	ctx, cancel := context.WithTimeout(ctx, serving)
	defer cancel()
	p.asked, p.delivered = p.gateway.called(p.scenario.Name()), time.Now()
	original := build(p.pac.app.ID)
	original.Header = original.Header.Clone()
	maps.Copy(original.Header, p.pac.header)
	code, body, err := p.forge.Deliver(ctx, p.pac.hook, original)
	if err != nil {
		return err
	}
	if code/100 != 2 {
		return fmt.Errorf("Pipelines-as-Code answers %d %s", code, body)
	}
	delivery := build(p.ours.app.ID)
	return cluster.Poll(ctx, 200*time.Millisecond, func() error {
		code, body, err := p.forge.Deliver(ctx, p.ours.hook, delivery)
		if err != nil {
			return err
		}
		if code != http.StatusAccepted && code != http.StatusOK {
			return fmt.Errorf("our receiver answers %d %s", code, body)
		}
		if name := recordedAs.FindSubmatch(body); name != nil {
			p.events = append(p.events, string(name[1]))
		}
		return nil
	})
}
