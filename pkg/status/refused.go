// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"

	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/status/diagnosis"
)

// refusal is the data of created.md and invalid.md. Source is a link in Markdown, or empty.
type refusal struct{ Pipeline, Source, Words, Refuser, Advice string }

// refused sets the check of a run whose definition was refused. The words of the refusal are
// verbatim: people search for them.
func (in Input) refused(c *Check, run RunState) {
	in.conclude(c, run.Run.Pipeline, Failure)
	c.Summary = in.summary(run.Run.Pipeline, saysNotStarted)
	reason, words := run.Run.Refused.Reason, run.Run.Refused.Message
	c.Words = words
	c.DetailsURL = "" // there is nothing to look at
	from := in.sourceOf(run, words)
	data := refusal{
		Pipeline: plain(cmp.Or(run.Run.Pipeline, run.Run.Name)), Source: from.link(in), Words: block(words),
	}
	if who, advice := diagnosis.Refuser(reason, words); who.Kind != "" {
		c.Title = fmt.Sprintf(titleRejected, visible(who.String()))
		data.Refuser = markdown(who)
		data.Advice = fmt.Sprintf(advice, cmp.Or(data.Source, wordsDefinition))
		c.Text = render("created.md", data)
		return
	}
	c.Title = titleInvalid
	if from.file != "" {
		c.Title = fmt.Sprintf(titleInvalidFile, visible(from.file))
	}
	c.Text = render("invalid.md", data)
}

// source is the place of a mistake in the repository.
type source struct {
	file string
	line int
}

// position matches how messages about a file of the author begin: ".tekton/build.yaml:3:7: ".
var position = regexp.MustCompile(`^(\.tekton/[^:\n]+\.ya?ml)(?::(\d+))?(?::\d+)?: `)

// sourceOf returns the place that a refusal names, or the file of the pipeline.
func (in Input) sourceOf(run RunState, words string) source {
	if found := position.FindStringSubmatch(words); found != nil {
		at := source{file: found[1]}
		if n, err := strconv.Atoi(found[2]); err == nil {
			at.line = n
		}
		return at
	}
	if plan := in.Event.Status.Plan; plan != nil {
		for _, d := range plan.Decisions {
			if cmp.Or(d.Pipeline, d.File) == run.Run.Pipeline {
				return source{file: d.File}
			}
		}
	}
	return source{}
}

// link returns the place as a link to its page at the commit, in Markdown. Without such a page it
// is the place alone, and "" if no file is known.
func (s source) link(in Input) string {
	if s.file == "" {
		return ""
	}
	words := plain(s.file)
	if s.line > 0 {
		words += fmt.Sprintf(wordsLine, s.line)
	}
	sha := ""
	if plan := in.Event.Status.Plan; plan != nil {
		sha = cmp.Or(plan.DefinitionSHA, plan.HeadSHA)
	}
	page := target(git.FilePage(&in.Event.Spec, sha, s.file, s.line))
	if page == "" {
		return "`" + words + "`"
	}
	return "[" + words + "](" + page + ")"
}

// markdown returns the component that refused a run, for a sentence.
func markdown(c diagnosis.Component) string {
	if c.Name == "" {
		return c.Kind
	}
	return c.Kind + " <b>" + plain(c.Name) + "</b>"
}
