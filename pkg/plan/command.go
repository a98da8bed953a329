// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/command"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resolve"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

const (
	reasonUnknownName  = "UnknownName"
	reasonBadArgument  = "BadArgument"
	reasonTooManyNames = "TooManyNames"
	// maxListed is the names that a message lists, each of at most maxShown characters.
	maxListed = 20
	maxShown  = 64
)

// heard is what a comment asks for, nil for every other event; malformed is why it cannot be done
// as it is written.
type heard struct {
	command   *command.Command
	malformed *fault.Error
	// cancelsRun is true if it ends a run that is going on.
	cancelsRun bool
}

// hear learns what a comment says. One with a command is an event of the command's type from here
// on, and it ends here if whoever wrote it may not write: before anything is read that a stranger
// could have us read (S17). A service that signs nothing has not said yet that the comment is
// theirs: that only keeps a comment from ending here.
func (p *planner) hear(ctx context.Context) (end *Plan, err error) {
	if p.spec.Comment == nil {
		return nil, nil
	}
	written, err := p.Comment(ctx)
	if err != nil {
		return nil, err
	}
	p.spec.Comment.Body = withLineFeeds(written)
	p.command, err = command.Parse(p.spec.Comment.Body, p.prefix(), p.onCommit())
	p.malformed = fault.Of(err)
	if p.command != nil {
		p.spec.EventType = p.command.EventType()
		p.aim()
	} else if end := p.saidOnCommit(); end != nil {
		return end, nil
	}
	if p.Earlier != nil {
		return nil, nil
	}
	refused, why, err := p.desk.Commenter(ctx, p.known())
	switch {
	case err != nil:
		return nil, err
	case refused:
		return p.end(v1alpha1.DispositionIgnored, p.Event.Spec.SHA, "NotApproved", why), nil
	case p.command != nil && p.command.Kind == command.Cancel:
		return p.cancelsOwn(ctx)
	case p.startsFailed():
		return nil, p.first(ctx)
	}
	return nil, nil
}

// withLineFeeds returns a comment with a line feed for each line break. GitHub's web form sends CR
// and LF, and $ in a regular expression matches in front of a line feed only. Everything that reads
// a comment reads this text, except for expressions and placeholders that read the payload.
func withLineFeeds(comment string) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(comment)
}

// startsFailed reports whether a command starts what is for it as far as it has not run with
// success.
func (p *planner) startsFailed() bool {
	return p.command != nil && p.malformed == nil &&
		(p.command.Kind == command.Retest && !p.named() || p.command.Kind == command.OkToTest)
}

// first waits until what ran can be read without somebody else deciding by the same.
func (p *planner) first(ctx context.Context) error {
	if p.First == nil {
		return nil
	}
	return p.First(ctx, p.spec.Subjects())
}

// Mistaken reports whether a command cannot be done as it is written: it does nothing until
// somebody writes another one.
func (e *Ending) Mistaken() bool {
	return e.Disposition == v1alpha1.DispositionIgnored && slices.Contains([]string{
		reasonUnknownName, reasonBadArgument, reasonTooManyNames, command.ReasonContradictory, command.ReasonMalformed,
	}, e.Reason)
}

// prefix is the word that commands begin with.
func (p *planner) prefix() string {
	if p.Repository.Spec.Settings == nil {
		return ""
	}
	return p.Repository.Spec.Settings.GitOpsCommandPrefix
}

// asks is the command of somebody who may give it, as it is written but without its arguments, for
// the reply; "" for every other event, and for one of an author who has no right but to cancel the
// own runs, unless it ends one. Of a command that is not written as it has to be it is the first
// word.
func (p *planner) asks() string {
	if p.command == nil || !p.Heeded || p.spec.PullRequest == nil || p.unanswered() {
		return ""
	}
	const names, most = 10, 200
	words := []string{"/" + string(p.command.Kind)}
	if prefix, err := command.Prefix(p.prefix()); err == nil && prefix != "" {
		words = []string{"/" + prefix, string(p.command.Kind)}
	}
	if p.command.SHA != "" {
		words = append(words, p.command.SHA)
	}
	for i, name := range p.command.Names {
		if i == names {
			words = append(words, "…")
			break
		}
		words = append(words, shown(name))
	}
	asked := []rune(strings.Join(words, " "))
	if len(asked) > most {
		asked = append(asked[:most], '…')
	}
	return string(asked)
}

// unanswered reports whether the command is a /cancel of the pull request's author that is not
// known to end a run, and the author has no other right, or nobody knows what there is to end.
func (p *planner) unanswered() bool {
	own := p.command.Kind == command.Cancel && strings.EqualFold(p.spec.Sender, p.spec.PullRequest.Author)
	return own && !p.cancelsRun && (p.Untrusted || p.Cancels == nil)
}

// remark reports whether the event is a comment without a command. Only pipelines with on-comment
// are for it.
func (p *planner) remark() bool { return p.spec.Comment != nil && p.command == nil }

// endCommand ends a command of somebody who may write and that cannot be done, nil if the event
// goes on.
func (p *planner) endCommand(ctx context.Context) (*Plan, error) {
	if p.command == nil {
		return nil, nil
	}
	end := func(reason, message string) (*Plan, error) {
		return p.end(v1alpha1.DispositionIgnored, p.spec.SHA, reason, message), nil
	}
	if p.malformed != nil {
		return end(p.malformed.Reason, p.malformed.Message)
	}
	if p.command.Kind == command.Cancel {
		return p.cancelled(ctx)
	}
	if why := p.badArgument(); why != "" {
		return end(reasonBadArgument, "nothing was started: "+why)
	}
	return nil, nil
}

// badArgument says why a value that a command has for a param may not be used, "" if all may (S19).
func (p *planner) badArgument() string {
	declared := map[string]bool{}
	secret := map[string]bool{}
	for _, param := range params(p.Repository) {
		declared[param.Name] = true
		secret[param.Name] = secret[param.Name] || param.Secret != nil
	}
	standard := resolve.Variables(p.spec, git.Head{}, p.Repository.Namespace)
	maps.DeleteFunc(declared, func(name string, _ bool) bool { return secret[name] || template.Reserved(name, standard) })
	for _, name := range slices.Sorted(maps.Keys(p.command.Args)) {
		switch {
		case template.Reserved(name, standard):
			return shown(name) + " is a variable of Plumbline's own, which nobody sets"
		case secret[name]:
			return shown(name) + " has its value from a secret, which no comment replaces"
		case !declared[name]:
			return fmt.Sprintf(
				"the Repository has no param %s in spec.params. Those that can be set: %s",
				shown(name),
				listed(slices.Sorted(maps.Keys(declared))),
			)
		}
	}
	return ""
}

// arguments are the values that a command has for params. They go before the Repository's own.
func (p *planner) arguments() []template.Param {
	if p.command == nil {
		return nil
	}
	var all []template.Param
	for _, name := range slices.Sorted(maps.Keys(p.command.Args)) {
		all = append(all, template.Param{Name: name, Value: p.command.Args[name], Field: "the comment"})
	}
	return all
}

// named reports whether a command names pipelines.
func (p *planner) named() bool { return p.command != nil && len(p.command.Names) > 0 }

// anyName reports whether a name starts its pipeline whatever the annotations say (S20). Whoever
// can change the definitions of a pull request could change the annotations as well; those of the
// default branch restrict.
func (p *planner) anyName() bool {
	settings := p.Repository.Spec.Settings
	return !p.fromDefaultBranch() || settings != nil && settings.TestAny != nil && *settings.TestAny
}

// nameUnknown finds the definitions that a command names. If one does not exist, the command starts
// nothing and the answer says so: its author can correct the name, and nothing runs twice.
func (d *draft) nameUnknown(decisions []Decision) string {
	if !d.named() {
		return ""
	}
	known := map[string]bool{}
	for _, definition := range d.set.Definitions() {
		known[d.nameOf(definition)] = true
	}
	d.wanted = map[string]bool{}
	var unknown []string
	for _, name := range d.command.Names {
		switch {
		case known[name]:
			d.wanted[name] = true
		case known[name+"-"]: // a generateName
			d.wanted[name+"-"] = true
		default:
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 || d.Earlier != nil {
		return ""
	}
	for i := range decisions {
		decisions[i].Open, decisions[i].Reason = false, "the command names a pipeline that does not exist, so it starts nothing"
	}
	all := slices.Sorted(maps.Keys(known))
	hint := ""
	if meant := nearest(unknown[0], all); len(unknown) == 1 && meant != "" {
		hint = "Did you mean " + meant + "? "
	}
	return fmt.Sprintf("nothing was started: no pipeline is called %s. %s(All: %s)", listed(unknown), hint, listed(all))
}

// nameOf is what people call a definition, its placeholders replaced as far as that is known
// without asking anybody.
func (d *draft) nameOf(definition resolve.Definition) string {
	return d.facts.scope.Known(definition.Name)
}

// unasked is an Ignored fault for a definition that a command does not name.
func (d *draft) unasked(definition resolve.Definition) error {
	if d.wanted == nil || d.wanted[d.nameOf(definition)] {
		return nil
	}
	return fault.Ignoredf("NotSelected", v1alpha1.NotNamed)
}

// listed writes names for people, some of them if there are many.
func listed(names []string) string {
	more := ""
	if len(names) > maxListed {
		more = fmt.Sprintf(" and %d more", len(names)-maxListed)
		names = names[:maxListed]
	}
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = shown(name)
	}
	return cmp.Or(strings.Join(all, ", "), "none") + more
}

func shown(name string) string {
	if runes := []rune(name); len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return name
}
