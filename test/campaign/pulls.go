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

// toldOf remembers a delivery that starts something unless the pull request is closed before it is
// read.
func (r *repository) toldOf(p *pull, d delivery) delivery {
	p.keys = append(p.keys, d.ID())
	return r.told(d, starts)
}

// some is a pull request that is open. If there is none it opens one, and returns what tells of
// that.
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
	return []delivery{r.toldOf(p, r.tell(p.number, opened))}
}

// moves pushes to a pull request. The push itself is not told of.
func (r *repository) moves(by *rand.Rand) []delivery {
	if len(r.pulling) == 0 {
		return nil
	}
	p := pick(by, r.pulling)
	r.moved(p, by)
	return []delivery{r.toldOf(p, r.tell(p.number, synchronize))}
}

// moved pushes to a pull request, and returns what tells of the push itself.
func (r *repository) moved(p *pull, by *rand.Rand) delivery {
	d := r.push(p.branch, r.change(by))
	r.got(p.number, "", r.tip(p.branch))
	r.got(0, "refs/heads/"+p.branch, r.tip(p.branch))
	return d
}

// movesTwice pushes to a pull request and tells of it twice, in either order: one of the two events
// runs each pipeline.
func (r *repository) movesTwice(by *rand.Rand) []delivery {
	p, before := r.some(by)
	pushed := r.told(r.moved(p, by), either)
	own := r.toldOf(p, r.tell(p.number, synchronize))
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

// close closes a pull request. What was told of it may be ignored from now on, and what it has
// started is cancelled.
func (r *repository) close(p *pull) delivery {
	r.pulling = slices.DeleteFunc(r.pulling, func(other *pull) bool { return other == p })
	r.pulled = append(r.pulled, p)
	for _, key := range p.keys {
		r.wishes[key] = either
	}
	r.got(p.number, "", "")
	return r.told(r.tell(p.number, closed), nothing)
}

// request is what the definitions wait for.
const request = "/deploy"

// asks asks for the pipelines at the head of a pull request, beside those that the head has
// started.
func (r *repository) asks(by *rand.Rand) []delivery {
	p, before := r.some(by)
	return append(before, r.toldOf(p, r.comment(p.number, author, request)))
}

// asksLate asks for them when the pull request is closed.
func (r *repository) asksLate(by *rand.Rand) (all []delivery) {
	if len(r.pulled) == 0 {
		var p *pull
		p, all = r.some(by)
		all = append(all, r.close(p))
	}
	return append(all, r.told(r.comment(pick(by, r.pulled).number, author, request), nothing))
}

// intrudes has somebody ask who may not.
func (r *repository) intrudes(by *rand.Rand) []delivery {
	return r.inVain(by, stranger, pick(by, []string{request, "/test", "/retest run-0", "/ok-to-test", "/cancel"}))
}

func (r *repository) chats(by *rand.Rand) []delivery {
	return r.inVain(by, author, "this looks good to me")
}

// commands starts pipelines by their names, or all that are for the pull request.
func (r *repository) commands(by *rand.Rand) []delivery {
	p, before := r.some(by)
	return append(before, r.toldOf(p, r.comment(p.number, author, pick(by, []string{"/test", "/test run-0"}))))
}

// decides asks for what depends on what is there by then: what has failed runs again, what runs is
// cancelled. What is not created yet may not be created any more.
func (r *repository) decides(by *rand.Rand) []delivery {
	p, before := r.some(by)
	body := pick(by, []string{"/retest", "/retest run-0", "/cancel", "/cancel run-0"})
	if strings.HasPrefix(body, "/cancel") {
		for _, key := range p.keys {
			r.wishes[key] = either
		}
	}
	return append(before, r.told(r.comment(p.number, author, body), either))
}

// inVain comments on a pull request without effect.
func (r *repository) inVain(by *rand.Rand, user, body string) []delivery {
	p, before := r.some(by)
	return append(before, r.told(r.comment(p.number, user, body), vain))
}
