// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Draw is the scenario with that number, from one, of a seed.
func Draw(seed uint64, n int) Scenario {
	// The numbers are mixed: what follows from 1 and 2 would begin alike otherwise.
	from := sha256.Sum256(fmt.Appendf(nil, "%d/%d", seed, n))
	d := drawer{rand.New(rand.NewChaCha8(from))} // #nosec G404 -- repeatable, and no secret
	s := Scenario{Seed: seed, N: n, Defaults: DefaultsOf(seed)}
	s.Provenance = pick(d, "", "", "", "source", "default_branch")
	s.HeadEdits = d.in(3)
	overtaken := d.in(4)
	if overtaken {
		s.Acts = d.newer()
	} else {
		s.Acts = d.acts()
	}
	held := overtaken || slices.ContainsFunc(s.Acts, ends)
	for i := range 1 + d.IntN(4) {
		// The first one fits what happens first, nearly always: a scenario in which nothing runs
		// shows little.
		p := d.pipeline(i, s.Acts[0], i == 0 && !d.in(8) || d.in(3))
		// Only runs that go on can be cancelled; what goes on keeps a scenario without an end from
		// being over.
		p.Held = held && d.in(2)
		if overtaken {
			d.overtakes(&p)
		} else if held {
			p.Cancels = pick(d, "", "", "true", "false")
		}
		p.Fails = !p.Held && p.Fails
		s.Pipelines = append(s.Pipelines, p)
	}
	for i, a := range s.Acts {
		if a.Kind == Comment && (a.Text == "" || a.Text == cancel) {
			s.Acts[i].Text = d.comment(a, s.Pipelines)
		}
	}
	if !held {
		d.control(&s)
	}
	return s
}

// ends reports whether an act may cancel runs.
func ends(a Act) bool { return a.Kind == Closed || a.Kind == Comment && a.Text == cancel }

type drawer struct{ *rand.Rand }

func pick[T any](d drawer, from ...T) T { return from[d.IntN(len(from))] }

// in is true once in n times.
func (d drawer) in(n int) bool { return d.IntN(n) == 0 }

func (d drawer) acts() []Act {
	acts := d.begin()
	if acts[0].Kind != Open {
		return acts
	}
	for range pick(d, 0, 1, 1, 2, 2, 3) {
		acts = append(acts, d.followUp(acts[0]))
		if acts[len(acts)-1].Kind == Closed {
			break
		}
	}
	return acts
}

// begin is the first act. The pull request of an untrusted user is approved, nearly always.
func (d drawer) begin() []Act {
	switch n := d.IntN(10); {
	case n < 2:
		return []Act{{Kind: Push, By: pick(d, Owner, Writer), Branch: pick(d, Main, Main, Release, Feature), Path: d.path(),
			Message: d.message()}}
	case n < 3:
		return []Act{{Kind: Tag, By: Writer, Branch: pick(d, "v1.0", "nightly")}}
	}
	open := Act{
		Kind: Open, By: pick(d, Owner, Writer), Branch: pick(d, Main, Main, Release), Path: d.path(), Message: d.message(),
	}
	if d.in(2) {
		open.Fork, open.By = true, pick(d, Writer, Member, Reader, Stranger, Stranger)
	}
	acts := []Act{open}
	if open.Fork && open.By == Stranger && !d.in(4) {
		acts = append(acts, Act{
			Kind: Comment, By: pick(d, Owner, Writer, Writer), Text: pick(d, approve, approve, approve+" {sha}"),
		})
	}
	return acts
}

// followUp is what happens to a pull request that is open.
func (d drawer) followUp(open Act) Act {
	switch n := d.IntN(10); {
	case n < 2:
		return Act{Kind: Sync, By: open.By, Path: d.path(), Message: d.message()}
	case n < 3 && !open.Fork:
		return Act{Kind: Echo, By: open.By}
	case n < 4:
		return Act{Kind: Labeled, By: pick(d, Owner, Writer, Triager, Triager), Text: pick(d, Label, Label, "other")}
	case n < 5:
		return Act{Kind: Closed, By: pick(d, open.By, Owner)}
	}
	return Act{Kind: Comment, By: pick(d, Owner, Writer, Writer, Writer, Owner, Member, Reader, Stranger, open.By),
		Text: pick(d, "", "", "", cancel)}
}

func (d drawer) path() string { return pick(d, "docs/readme.md", "src/main.go", "docs/new.md") }

func (d drawer) message() string {
	if d.in(14) {
		return "fix: a thing [skip ci]"
	}
	return pick(d, "change a thing", "fix: a thing")
}

// cancel marks a comment that ends runs until its text is drawn.
const cancel = "/cancel"

// approve is a comment whose text is not drawn again.
const approve = "/ok-to-test"

// comment is the text of a user who may know the pipelines' names.
func (d drawer) comment(a Act, pipelines []Pipeline) string {
	name := pick(d, pipelines...).Name
	if a.Text == cancel {
		return pick(d, cancel, cancel+" "+name)
	}
	return pick(d, "/test", "/test", "/retest", "/test "+name, "/test "+name, "/test "+name, "/test "+name,
		"/retest "+name, "/deploy now", "/test nothing", "/ok-to-test", "/ok-to-test", "/ok-to-test {sha}",
		"/deploy now", "/deploy now", "looks good", "looks good\r\n/test", "> /test", "/test\n/retest")
}

// pipeline draws one that fits an act, or any.
func (d drawer) pipeline(i int, act Act, fits bool) Pipeline {
	p := Pipeline{
		Name: fmt.Sprintf("p%d", i+1), Generated: d.in(2), Fails: d.in(3), Clones: d.in(3), On: map[string]string{},
	}
	switch n := d.IntN(12); {
	case fits && n < 8:
		d.fitting(p.On, act)
	case fits:
		p.On["on-cel-expression"] = pick(d, expressionsFor(act.Kind)...)
	case n < 5:
		d.events(p.On)
	case n < 8:
		p.On["on-cel-expression"] = pick(d, expressions()...)
	case n < 9:
		p.On["on-comment"] = "^/deploy"
	}
	return p
}

// events are annotations that need not fit what happens.
func (d drawer) events(on map[string]string) {
	on["on-event"] = pick(d, "[pull_request]", "[pull_request]", "[push]", "[push, pull_request]", "pull_request")
	on["on-target-branch"] = pick(d, "[main]", "[main]", "[main, release-*]", "[release-*]", "[refs/tags/*, main]",
		"[refs/heads/*]")
	switch d.IntN(6) {
	case 0:
		on["on-path-change"] = pick(d, "[docs/**]", "[src/**, other/**]")
	case 1:
		on["on-path-change-ignore"] = pick(d, "[docs/**]", "[src/*.go]")
	case 2, 3:
		on["on-label"] = "[" + Label + "]"
	}
}

// fitting are annotations that fit an act: its event, its branch and the path that it changes.
func (d drawer) fitting(on map[string]string, a Act) {
	switch a.Kind {
	case Tag:
		on["on-event"], on["on-target-branch"] = "[push]",
			pick(d, "[refs/tags/*]", "[refs/tags/*, main]", "[refs/tags/"+a.Branch+"]")
		return
	case Push:
		on["on-event"] = pick(d, "[push]", "push", "[push, pull_request]")
	default:
		on["on-event"] = pick(d, "[pull_request]", "[pull_request]", "pull_request", "[push, pull_request]")
	}
	on["on-target-branch"] = pick(d, "["+a.Branch+"]", "["+a.Branch+"]", a.Branch, "["+a.Branch+", other-*]",
		"[refs/heads/*]", "[refs/heads/"+a.Branch+"]")
	docs := strings.HasPrefix(a.Path, "docs/")
	switch n := d.IntN(5); {
	case n == 0 && docs:
		on["on-path-change"] = pick(d, "[docs/**]", "[docs/*.md, src/**]")
	case n == 0:
		on["on-path-change"] = pick(d, "[src/**, other/**]", "[**/*.go]")
	case n == 1 && docs:
		on["on-path-change-ignore"] = "[src/*.go]"
	case n == 1:
		on["on-path-change-ignore"] = "[docs/**]"
	}
}

// expressionsFor are expressions that fit most acts of a kind.
func expressionsFor(kind Kind) []string {
	switch kind {
	case Tag:
		return []string{`event == "push" && target_branch.startsWith("refs/tags/")`, `headers['x-github-event'] == "push"`}
	case Push:
		return []string{
			`event == "push" && target_branch in ["main", "release-1", "feature-x"]`, `headers['x-github-event'] == "push"`,
			`target_branch.matches("^(main|release-.*)$") && source_url == target_url`,
			`files.all.exists(f, f.matches("^(src|docs)/"))`,
			`event_title.startsWith("change") || event_title.startsWith("fix")`,
			`event == "push" && "{docs,src}/*".pathChanged()`,
		}
	}
	return []string{
		`event == "pull_request"`, `event == "pull_request" && target_branch.matches("^(main|release-.*)$")`,
		`event == "pull_request" && source_branch == "feature-x" && ("docs/*.md".pathChanged() || "src/**".pathChanged())`,
		`body.repository.default_branch == "main" && event_type != "pull_request_labeled"`,
		`files.all.exists(f, f.startsWith("src/") || f.startsWith("docs/"))`,
		`event == "pull_request" && source_url.endsWith(body.repository.name)`,
	}
}

// expressions need not be true of what happens.
func expressions() []string {
	return []string{
		`event == "pull_request"`,
		`event == "pull_request" && target_branch == "main"`,
		`event == "push" && target_branch == "main"`,
		`event == "push" && target_branch.startsWith("refs/tags/")`,
		`event == "pull_request" && source_branch == "feature-x" && "docs/*.md".pathChanged()`,
		`event_title.startsWith("change")`,
		`headers['x-github-event'] == "push"`,
		`body.repository.default_branch == "main" && event_type == "pull_request"`,
		`files.all.exists(f, f.startsWith("src/"))`,
		`event_type == "pull_request_labeled" && body.label.name == "ship"`,
		`target_branch.matches("^(main|release-.*)$") && source_url == target_url`,
	}
}
