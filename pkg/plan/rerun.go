// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/match"
)

// again finds out what a press of a re-run button is about: the pull request or the push that the check is of, and the pipelines. All
// that is asked before whoever pressed it is known to have write access is that.
func (p *planner) again(ctx context.Context) error {
	if p.spec.Rerun == nil {
		return nil
	}
	if p.Earlier == nil {
		may, err := p.Access.CanWrite(ctx, p.spec.Sender)
		if err != nil {
			return fmt.Errorf("asking for the access of %s: %w", p.spec.Sender, err)
		}
		if !may {
			return over("NotApproved", "Who asked for the check to run again has no write access to this repository.")
		}
	}
	found, err := p.find(ctx)
	if err != nil {
		return err
	}
	p.rerun = found
	p.spec.PullRequest = nil
	if err := found.describe(p.spec); err != nil {
		return err
	}
	if p.About == nil || p.Earlier != nil {
		return nil
	}
	if err := p.About(ctx, p.spec.Subject()); err != nil {
		return err
	}
	return p.look(ctx)
}

// look finds out once more what is to run again of the subject that was found, when nobody else is about to decide that.
func (p *planner) look(ctx context.Context) error {
	if err := p.first(ctx); err != nil {
		return err
	}
	list, err := p.recorded(ctx)
	if err != nil {
		return fmt.Errorf("reading what ran on commit %s: %w", p.spec.SHA, err)
	}
	list = of(list, p.spec.SHA)
	if now, _ := findIn(list, p.spec.Rerun); now != nil {
		now.pull = p.rerun.pull
		p.rerun = now
	}
	p.rerun.run(list)
	return p.rerun.describe(p.spec)
}

func over(reason, message string) error {
	return &Over{Why: fault.Of(fault.Ignoredf(reason, "%s", message))}
}

// find looks in the records of what GitHub names for the commit, then in those of the commit itself, and only then asks which other
// pull requests have it: of a fork's GitHub names none.
func (p *planner) find(ctx context.Context) (*rerun, error) {
	numbers := append(slices.Clone(p.spec.Rerun.Pulls), 0)
	found, err := p.findIn(ctx, numbers)
	if found != nil || err != nil {
		return found, err
	}
	pulls, err := p.History.Pulls(ctx, p.spec.SHA)
	if err != nil {
		return nil, fmt.Errorf("asking which pull requests have commit %s: %w", p.spec.SHA, err)
	}
	var others []int64
	for _, pull := range pulls {
		if pull.Open && !slices.Contains(numbers, pull.Number) {
			others = append(others, pull.Number)
		}
	}
	others = others[:min(len(others), v1alpha1.MaxRerunPulls)]
	found, err = p.findIn(ctx, others)
	if found != nil || err != nil {
		return found, err
	}
	return p.unrecorded(append(slices.Clone(p.spec.Rerun.Pulls), others...)), nil
}

// findIn looks in the records of pull requests, of which 0 is the commit. Of all checks those are taken first that did not succeed.
func (p *planner) findIn(ctx context.Context, numbers []int64) (*rerun, error) {
	var green *rerun
	for _, number := range numbers {
		list, err := p.RecordsOf(ctx, subjectOf(p.spec, number))
		if err != nil {
			return nil, fmt.Errorf("reading what ran on commit %s: %w", p.spec.SHA, err)
		}
		list = of(list, p.spec.SHA)
		found, wanted := findIn(list, p.spec.Rerun)
		if found == nil {
			continue
		}
		found.pull = number
		if wanted {
			return found, nil
		}
		if green == nil {
			green = found
		}
	}
	return green, nil
}

// subjectOf is the subject of a pull request of the event's repository, or for 0 of the event's commit.
func subjectOf(spec *v1alpha1.GitEventSpec, number int64) string {
	about := spec.DeepCopy()
	about.PullRequest = nil
	if number != 0 {
		about.PullRequest = &v1alpha1.PullRequest{Number: number}
	}
	return about.Subject()
}

// unrecorded is what is known of a check whose record is gone: its name, and where the commit is now.
func (p *planner) unrecorded(pulls []int64) *rerun {
	found := &rerun{unrecorded: true}
	if name, is := strings.CutPrefix(p.spec.Rerun.Check, p.Config.ApplicationName+" / "); is {
		found.pipelines = []string{name}
	}
	if len(pulls) > 0 {
		found.pull = pulls[0]
	}
	return found
}

// stands tells whether what was asked for may still run, as the Git service describes the pull request now: sha is the commit, and the
// spec has the head of this moment. Code of a fork runs again if it ran before, so that somebody has allowed this commit; that
// author and sender may write is asked as well (admit).
func (p *planner) stands(sha string) error {
	head := p.spec.SHA
	p.spec.SHA = sha
	pr := p.spec.PullRequest
	switch {
	case pr == nil || p.Earlier != nil:
		return nil
	case !p.sameRepository() && !p.rerun.ran:
		return over("NotApproved", "No run of this commit, which is a fork's, is on record: nobody has allowed it.")
	case p.rerun.unrecorded && head != sha:
		return over("NotTheHead", fmt.Sprintf("Nothing is on record of commit %s, and the head of pull request #%d is %s now.", sha, pr.Number, head))
	}
	return nil
}

// repeats decides about a candidate by its name: it ran before, whatever its annotations say. It tells whether that is how this event
// chooses.
func (d *draft) repeats(c *candidate) bool {
	if d.rerun == nil {
		return false
	}
	if run := d.rerun.running[c.definition.Name]; run != "" {
		c.err = fault.Ignoredf("NotSelected", "its latest run on this commit, %s, is not over", run)
		return true
	}
	if d.rerun.pipelines == nil {
		return false
	}
	switch {
	case !slices.Contains(d.rerun.pipelines, c.definition.Name):
		c.err = fault.Ignoredf("NotSelected", "it is not what was asked to run again")
	case c.definition.Err != nil:
		c.err = c.definition.Err
	default:
		c.selection = match.Decision{Selected: true, Reason: fmt.Sprintf("%s: %s asked for it to run again", match.Selected, d.spec.Sender)}
	}
	return true
}
