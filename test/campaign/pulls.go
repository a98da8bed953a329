// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// What happens to a pull request.
const (
	opened      = "opened"
	synchronize = "synchronize"
	closed      = "closed"
)

type pull struct {
	number int
	branch string
	// keys are those of the deliveries that start something as long as it is open.
	keys []string
}

// expectWhileOpen records a delivery that starts something unless the pull request is closed
// before it is read.
func (r *repository) expectWhileOpen(p *pull, d delivery) delivery {
	p.keys = append(p.keys, d.ID())
	return r.expect(d, starts)
}

// some returns an open pull request. If there is none it opens one, and returns its delivery.
func (r *repository) some(by *rand.Rand) (*pull, []delivery) {
	if len(r.pulling) > 0 {
		return pick(by, r.pulling), nil
	}
	before := r.opens(by)
	return r.pulling[0], before
}

func (r *repository) opens(by *rand.Rand) []delivery {
	r.count++
	p := &pull{branch: fmt.Sprint("pull-", r.count)}
	p.number = r.open(p.branch, r.change(by))
	r.got(p.number, "", r.tip(p.branch))
	r.got(0, "refs/heads/"+p.branch, r.tip(p.branch))
	r.pulling = append(r.pulling, p)
	return []delivery{r.expectWhileOpen(p, r.tell(p.number, opened))}
}

// moves pushes to a pull request. The push itself is not delivered.
func (r *repository) moves(by *rand.Rand) []delivery {
	if len(r.pulling) == 0 {
		return nil
	}
	p := pick(by, r.pulling)
	r.moved(p, by)
	return []delivery{r.expectWhileOpen(p, r.tell(p.number, synchronize))}
}

// moved pushes to a pull request, and returns the delivery of the push itself.
func (r *repository) moved(p *pull, by *rand.Rand) delivery {
	d := r.push(p.branch, r.change(by))
	r.got(p.number, "", r.tip(p.branch))
	r.got(0, "refs/heads/"+p.branch, r.tip(p.branch))
	return d
}

// movesTwice pushes to a pull request and delivers both events, in either order: one of the two
// runs each pipeline.
func (r *repository) movesTwice(by *rand.Rand) []delivery {
	p, before := r.some(by)
	pushed := r.expect(r.moved(p, by), either)
	own := r.expectWhileOpen(p, r.tell(p.number, synchronize))
	r.pairs[own.ID()] = pushed.ID()
	both := []delivery{pushed, own}
	by.Shuffle(len(both), func(i, j int) { both[i], both[j] = both[j], both[i] })
	return append(before, both...)
}

func (r *repository) closes(by *rand.Rand) []delivery {
	if len(r.pulling) == 0 {
		return nil
	}
	return []delivery{r.close(pick(by, r.pulling))}
}

// close closes a pull request. Its earlier deliveries may be ignored from now on, and its runs are
// cancelled.
func (r *repository) close(p *pull) delivery {
	r.pulling = slices.DeleteFunc(r.pulling, func(other *pull) bool { return other == p })
	r.pulled = append(r.pulled, p)
	for _, key := range p.keys {
		r.outcomes[key] = either
	}
	r.got(p.number, "", "")
	return r.expect(r.tell(p.number, closed), nothing)
}

// request is the comment that starts the definitions.
const request = "/deploy"

// asks starts the pipelines again at the head of a pull request.
func (r *repository) asks(by *rand.Rand) []delivery {
	p, before := r.some(by)
	return append(before, r.expectWhileOpen(p, r.comment(p.number, author, request)))
}

// asksLate starts them when the pull request is closed.
func (r *repository) asksLate(by *rand.Rand) (all []delivery) {
	if len(r.pulled) == 0 {
		var p *pull
		p, all = r.some(by)
		all = append(all, r.close(p))
	}
	return append(all, r.expect(r.comment(pick(by, r.pulled).number, author, request), nothing))
}

// commandsWithoutRight gives a command as a user without the right.
func (r *repository) commandsWithoutRight(by *rand.Rand) []delivery {
	return r.commentWithoutEffect(by, outsider,
		pick(by, []string{request, "/test", "/retest run-0", "/ok-to-test", "/cancel"}))
}

func (r *repository) comments(by *rand.Rand) []delivery {
	return r.commentWithoutEffect(by, author, "this looks good to me")
}

// commands starts pipelines by their names, or all of the pull request.
func (r *repository) commands(by *rand.Rand) []delivery {
	p, before := r.some(by)
	return append(before, r.expectWhileOpen(p, r.comment(p.number, author, pick(by, []string{"/test", "/test run-0"}))))
}

// decides gives commands whose effect depends on the current runs: failed ones run again, active
// ones are cancelled, and those that are not created yet may never be.
func (r *repository) decides(by *rand.Rand) []delivery {
	p, before := r.some(by)
	body := pick(by, []string{"/retest", "/retest run-0", "/cancel", "/cancel run-0"})
	if strings.HasPrefix(body, "/cancel") {
		for _, key := range p.keys {
			r.outcomes[key] = either
		}
	}
	return append(before, r.expect(r.comment(p.number, author, body), either))
}

// commentWithoutEffect comments on a pull request without effect.
func (r *repository) commentWithoutEffect(by *rand.Rand, user, body string) []delivery {
	p, before := r.some(by)
	return append(before, r.expect(r.comment(p.number, user, body), noEffect))
}
