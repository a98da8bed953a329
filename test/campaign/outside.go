// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

// unapprovedCode is the name of a violation of S21 in docs/codes.md: code ran that no user had
// approved.
const unapprovedCode = "S21"

// outside is a pull request of the outsider, from a fork.
type outside struct {
	*pull
	head string
}

// opensOutside opens a pull request of the outsider. It waits for an approval.
func (r *repository) opensOutside(by *rand.Rand) []delivery {
	r.count++
	p := &outside{pull: &pull{branch: fmt.Sprint("outside-", r.count)}}
	p.number, p.head = r.openFork(p.branch, r.change(by))
	r.fromOutside(p)
	r.outsiders = append(r.outsiders, p)
	return []delivery{r.expect(r.tell(p.number, opened), either)}
}

// fromOutside records the head of a pull request as not approved.
func (r *repository) fromOutside(p *outside) {
	r.got(p.number, "", p.head)
	if _, known := r.approved[p.head]; !known {
		r.approved[p.head] = false
	}
}

// someOutside returns a pull request of the outsider. If there is none, it opens one.
func (r *repository) someOutside(by *rand.Rand) (*outside, []delivery) {
	var before []delivery
	if len(r.outsiders) == 0 {
		before = r.opensOutside(by)
	}
	return pick(by, r.outsiders), before
}

// movesOutside pushes as the outsider: the pull request waits again, whatever was approved before.
func (r *repository) movesOutside(by *rand.Rand) []delivery {
	p, before := r.someOutside(by)
	return append(before, r.moveOutside(p, by))
}

func (r *repository) moveOutside(p *outside, by *rand.Rand) delivery {
	p.head = r.pushFork(p.branch, r.change(by))
	r.fromOutside(p)
	return r.expect(r.tell(p.number, synchronize), either)
}

// approves has the author approve the current head, with its commit id or without. The outsider
// may push at the same time, and the two deliveries come in either order. The outsider may also
// try to approve.
func (r *repository) approves(by *rand.Rand) []delivery {
	p, before := r.someOutside(by)
	if by.IntN(5) == 0 {
		return append(before, r.expect(r.comment(p.number, outsider, "/ok-to-test "+p.head), noEffect))
	}
	body := pick(by, []string{"/ok-to-test", "/ok-to-test " + p.head, "/test"})
	all := []delivery{r.expect(r.comment(p.number, author, body), either)}
	r.approved[p.head] = true
	if by.IntN(3) == 0 {
		all = append(all, r.moveOutside(p, by))
		by.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	return append(before, all...)
}

// unapproved is S21: no PipelineRun is of an outsider's commit that was not the head at an
// approval by a user with the right. It counts the PipelineRuns of approved commits.
func (c *checker) unapproved(e *invariants.Evidence) (broken []invariants.Violation) {
	c.allowed = 0
	for _, run := range e.Made() {
		sha := run.Labels[pipelinesascode.SHA]
		approved, foreign := c.stage.approval(sha)
		switch {
		case foreign && !approved:
			broken = append(broken, invariants.Violated(unapprovedCode, run.Name,
				"PipelineRun %s is of the untrusted commit %s, which no user has approved", run.Name, sha))
		case foreign:
			c.allowed++
		}
	}
	return broken
}

// approval reports whether a commit was approved, and whether it is an outsider's.
func (s *stage) approval(sha string) (approved, foreign bool) {
	i := slices.IndexFunc(s.repositories, func(r *repository) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		approved, foreign = r.approved[sha]
		return foreign
	})
	return i >= 0 && approved, foreign
}
