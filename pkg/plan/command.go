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
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

const (
	reasonUnknownName  = "UnknownName"
	reasonBadArgument  = "BadArgument"
	reasonTooManyNames = "TooManyNames"
	// maxListed is how many names a message lists, each cut to maxShown characters.
	maxListed = 20
	maxShown  = 64
)

// request is the request of a comment, empty for every other event.
type request struct {
	command   *command.Command
	malformed *fault.Error
	// cancelsRun is true if the command cancels an unfinished run.
	cancelsRun bool
}

// readComment reads the comment and its command. A comment with a command is an event of the
// command's type from here on. It ends here if its author has no write access, before anything is
// read that an untrusted user could make us read (S17). At a service that does not sign its
// deliveries, the author is not confirmed yet; a wrong author can only prevent this early end.
func (p *planner) readComment(ctx context.Context) (end *Plan, err error) {
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
		p.setTargetRef()
	} else if end := p.endRemarkOnCommit(); end != nil {
		return end, nil
	}
	if p.Earlier != nil {
		return nil, nil
	}
	refused, why, err := p.authz.RefusesCommenter(ctx, p.authzEvent())
	switch {
	case err != nil:
		return nil, err
	case refused:
		return p.end(v1alpha1.DispositionIgnored, p.Event.Spec.SHA, reasonNotApproved, why), nil
	case p.command != nil && p.command.Kind == command.Cancel:
		return p.endOwnCancel(ctx)
	case p.onlyUnsuccessful():
		return nil, p.waitForOthers(ctx)
	}
	return nil, nil
}

// withLineFeeds returns a comment with a line feed for each line break. GitHub's web form sends CR
// and LF, but $ in a regular expression matches only before a line feed. Everything reads this
// text, except expressions and placeholders that read the payload.
func withLineFeeds(comment string) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(comment)
}

// onlyUnsuccessful reports whether a command starts only pipelines whose last run has not
// succeeded.
func (p *planner) onlyUnsuccessful() bool {
	return p.command != nil && p.malformed == nil &&
		(p.command.Kind == command.Retest && !p.namesPipelines() || p.command.Kind == command.OkToTest)
}

// waitForOthers waits until no other event is being planned from the same earlier runs.
func (p *planner) waitForOthers(ctx context.Context) error {
	if p.WaitForOthers == nil {
		return nil
	}
	return p.WaitForOthers(ctx, p.spec.Subjects())
}

// InvalidCommand reports whether the command cannot be carried out as it is written, so that a user
// has to write another one.
func (e *Ending) InvalidCommand() bool {
	return e.Disposition == v1alpha1.DispositionIgnored && slices.Contains([]string{
		reasonUnknownName, reasonBadArgument, reasonTooManyNames, command.ReasonContradictory, command.ReasonMalformed,
	}, e.Reason)
}

// prefix returns the word that commands begin with.
func (p *planner) prefix() string {
	if p.Repository.Spec.Settings == nil {
		return ""
	}
	return p.Repository.Spec.Settings.GitOpsCommandPrefix
}

// repliedCommand returns the command that gets a reply, as written but without its arguments. It is
// the first word of a malformed command. It returns "" for every other event and for a user who may
// not give the command. It also returns "" for a /cancel of the user's own pull request that
// cancels nothing.
func (p *planner) repliedCommand() string {
	if p.command == nil || !p.MayCommand || p.spec.PullRequest == nil || p.withoutReply() {
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

// withoutReply reports whether the command is a /cancel by the pull request's author that is not
// known to cancel a run. The author has no other right, or it is not known what could be cancelled.
func (p *planner) withoutReply() bool {
	own := p.command.Kind == command.Cancel && strings.EqualFold(p.spec.Sender, p.spec.PullRequest.Author)
	return own && !p.cancelsRun && (p.Untrusted || p.Cancels == nil)
}

// isRemark reports whether the event is a comment without a command. It can start only pipelines
// with on-comment.
func (p *planner) isRemark() bool { return p.spec.Comment != nil && p.command == nil }

// endCommand returns the plan of an allowed command that starts no runs, nil for others: it cannot
// be carried out, or it is a /cancel.
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
	switch p.command.Kind {
	case command.Cancel:
		return p.cancelAsRequested(ctx)
	case command.Why:
		return p.explain(ctx)
	}
	if why := p.badArgument(); why != "" {
		return end(reasonBadArgument, "nothing was started: "+why)
	}
	return nil, nil
}

// badArgument returns why a command must not set one of its params, "" if it may set all (S19).
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
			return shown(name) + " is a variable of Plumbline's own, which cannot be set"
		case secret[name]:
			return shown(name) + " gets its value from a secret, which a comment cannot replace"
		case !declared[name]:
			return fmt.Sprintf("the Repository has no param %s in spec.params. Those that can be set: %s", shown(name),
				listed(slices.Sorted(maps.Keys(declared))))
		}
	}
	return ""
}

// arguments returns the params that a command or a request to /incoming sets. They override the
// Repository's own, and those of a request also standard variables.
func (p *planner) arguments() []template.Param {
	values, field := map[string]string{}, "the request"
	switch {
	case p.command != nil:
		values, field = p.command.Args, "the comment"
	case p.spec.Incoming != nil:
		values = p.spec.Incoming.Params
	}
	var all []template.Param
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, template.Param{Name: name, Value: values[name], Field: field})
	}
	return all
}

// namesPipelines reports whether a command or a request to /incoming names pipelines.
func (p *planner) namesPipelines() bool { return len(p.requestedNames()) > 0 }

// startsAnyName reports whether a command may start a pipeline by name whatever its annotations say
// (S20). A user who can change the definitions of a pull request could change the annotations too,
// but those of the default branch restrict.
func (p *planner) startsAnyName() bool {
	settings := p.Repository.Spec.Settings
	return !p.fromDefaultBranch() || settings != nil && settings.TestAny != nil && *settings.TestAny
}

// nameUnknown finds the definitions that a command or a request to /incoming names. If one does not
// exist, the event starts nothing and nameUnknown returns the message, so its author can correct
// the name, and nothing runs twice.
func (d *draft) nameUnknown(decisions []v1alpha1.Decision) string {
	if !d.namesPipelines() {
		return ""
	}
	known := map[string]bool{}
	for _, definition := range d.set.Definitions() {
		known[d.nameOf(definition)] = true
	}
	d.named = map[string]bool{}
	var unknown []string
	for _, name := range d.requestedNames() {
		switch {
		case known[name]:
			d.named[name] = true
		case known[name+"-"]: // a generateName
			d.named[name+"-"] = true
		default:
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 || d.Earlier != nil {
		return ""
	}
	for i := range decisions {
		decisions[i].Open, decisions[i].Reason = false, "an unknown pipeline was requested, so nothing starts"
	}
	all := slices.Sorted(maps.Keys(known))
	hint := "."
	if len(unknown) == 1 {
		hint = cmp.Or(text.DidYouMean(unknown[0], all), hint)
	}
	return fmt.Sprintf("nothing was started: no pipeline is called %s%s (All: %s)", listed(unknown), hint, listed(all))
}

// nameOf returns the name of a definition, with the placeholders replaced whose values are already
// known.
func (d *draft) nameOf(definition resolve.Definition) string {
	return d.facts.scope.Known(definition.Name)
}

// checkNamed returns an Ignored fault for a definition that a command does not name.
func (d *draft) checkNamed(definition resolve.Definition) error {
	if d.named == nil || d.named[d.nameOf(definition)] {
		return nil
	}
	return fault.Ignoredf(reasonNotSelected, v1alpha1.NotNamed)
}

// listed returns names for people, only some if there are many.
func listed(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = shown(name)
	}
	return cmp.Or(text.Some(all, maxListed, ", "), "none")
}

func shown(name string) string { return text.Shorten(name, maxShown, text.Runes) }
