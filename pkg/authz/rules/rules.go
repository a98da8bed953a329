// SPDX-License-Identifier: Apache-2.0

package rules

import "github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"

// rule is one rule of the list.
type rule interface {
	// decides returns the rule's verdict, with its question if the verdict is Asks. ok is false if
	// the rule does not apply to the event.
	decides(in Input) (Verdict, Question, bool)
	// why returns the sentence that explains the verdict to people.
	why() string
}

// rules returns the rules in the order in which they are tried. The first that applies decides.
func rules() []rule {
	return []rule{
		restricted{}, ownApproval{}, ownCancel{},
		commenterClosed{}, commenterUnknown{}, commenterUnlisted{}, commenterUntrusted{}, cancels{}, asksWhy{},
		pushed{},
		labellerUnknown{}, labellerUnlisted{}, labellerUntrusted{}, labellerConfirmed{}, labellerUnconfirmed{},
		approved{}, pullClosed{}, appsBranch{},
		authorUnknown{}, authorUnlisted{}, authorUntrusted{},
		actorUnknown{}, actorUnlisted{}, actorUntrusted{}, actorConfirmed{}, actorUnconfirmed{},
		listed{}, mayRun{},
	}
}

// verdict returns the result of a rule that asks nothing.
func verdict(v Verdict, applies bool) (Verdict, Question, bool) { return v, Question{}, applies }

// askAbout asks for the next fact about a person, if the person's right depends on one.
func (in Input) askAbout(who Person, applies bool) (Verdict, Question, bool) {
	_, ask := in.right(who)
	return Asks, Question{who, ask}, applies && ask != ""
}

// denyWithout denies what a person without the right did. policed selects the case with a policy or
// the one without.
func (in Input) denyWithout(who Person, policed, applies bool) (Verdict, Question, bool) {
	has, _ := in.right(who)
	return verdict(Unapproved, applies && in.policed(who) == policed && !has)
}

// askConfirmed asks whether the Git service itself confirms the actor.
func (in Input) askConfirmed(applies bool) (Verdict, Question, bool) {
	_, known := in.Known[Question{Actor, Confirmed}]
	return Asks, Question{Actor, Confirmed}, applies && !known
}

func (in Input) denyUnconfirmed(applies bool) (Verdict, Question, bool) {
	return verdict(Unapproved, applies && !in.Known[Question{Actor, Confirmed}])
}

// pushed reports whether only a user with write access can have caused the event: a push, or a
// commit that GitHub has made for its merge queue (docs/adr/0059).
func (in Input) pushed() bool {
	return in.Trigger == v1alpha1.TriggerPush || in.Trigger == v1alpha1.TriggerMergeGroup
}

func (in Input) pull() bool { return in.Trigger == v1alpha1.TriggerPullRequest }

// ownBranch reports whether the pull request comes from a branch of this repository, to which only
// accounts with write access can push. It is false if a policy says who may start it.
func (in Input) ownBranch() bool { return in.SameRepository && !in.policed(Author) }

// acted reports whether the decision depends on the actor. It does not for a comment, whose author
// is checked before, nor for a branch of the repository, which only accounts with write access can
// change.
func (in Input) acted() bool { return in.pull() && !in.Comment && !in.ownBranch() }

type restricted struct{}

func (restricted) decides(in Input) (Verdict, Question, bool) {
	return verdict(Unapproved, in.Restricted && (!in.pushed() || in.Comment))
}

func (restricted) why() string {
	return "The Repository's settings restrict who may start runs of pull requests in a way that this version cannot evaluate, " +
		"so no user may start one."
}

type ownApproval struct{}

func (ownApproval) decides(in Input) (Verdict, Question, bool) {
	return verdict(Unapproved, in.Command == OkToTest && in.Own)
}

func (ownApproval) why() string {
	return "The author of a pull request cannot approve it: another user has to."
}

type ownCancel struct{}

func (ownCancel) decides(in Input) (Verdict, Question, bool) {
	return verdict(Allowed, in.pull() && in.Command == Cancel && in.Own)
}

func (ownCancel) why() string { return "The author of a pull request may cancel its runs." }

type commenterClosed struct{}

func (commenterClosed) decides(in Input) (Verdict, Question, bool) {
	return verdict(Unapproved, in.Comment && in.closed(Commenter))
}

func (commenterClosed) why() string {
	return "The Repository's settings.policy names no team for such a comment, so it starts nothing."
}

type commenterUnknown struct{}

func (commenterUnknown) decides(in Input) (Verdict, Question, bool) {
	return in.askAbout(Commenter, in.Comment)
}

func (commenterUnknown) why() string {
	return "Whether the author of the comment may start runs of this repository is not known yet."
}

type commenterUnlisted struct{}

func (commenterUnlisted) decides(in Input) (Verdict, Question, bool) {
	return in.denyWithout(Commenter, true, in.Comment)
}

func (commenterUnlisted) why() string {
	return "The author of the comment is in no team that the Repository's settings.policy lists for it, and not in OWNERS."
}

type commenterUntrusted struct{}

func (commenterUntrusted) decides(in Input) (Verdict, Question, bool) {
	return in.denyWithout(Commenter, false, in.Comment)
}

func (commenterUntrusted) why() string {
	return "The author of the comment has no write access to this repository and is not in OWNERS."
}

type cancels struct{}

func (cancels) decides(in Input) (Verdict, Question, bool) {
	return verdict(Allowed, in.Comment && in.Command == Cancel)
}

func (cancels) why() string {
	return "The author of the comment has write access to this repository or is in OWNERS, so may cancel runs."
}

// asksWhy allows /why to each user who may start runs. The author of the pull request does not
// matter.
type asksWhy struct{}

func (asksWhy) decides(in Input) (Verdict, Question, bool) {
	return verdict(Allowed, in.Comment && in.Command == Why)
}

func (asksWhy) why() string {
	return "The author of the comment may start runs, so may ask what became of them."
}

type pushed struct{}

func (pushed) decides(in Input) (Verdict, Question, bool) {
	return verdict(Allowed, in.pushed())
}

func (pushed) why() string {
	return "Users who can push to the repository, or merge into it, may start its pipelines."
}

type labellerUnknown struct{}

func (labellerUnknown) decides(in Input) (Verdict, Question, bool) {
	return in.askAbout(Actor, in.Label)
}

func (labellerUnknown) why() string {
	return "Whether the user who set the label may start runs of this repository is not known yet."
}

type labellerUnlisted struct{}

func (labellerUnlisted) decides(in Input) (Verdict, Question, bool) {
	return in.denyWithout(Actor, true, in.Label)
}

func (labellerUnlisted) why() string {
	return "The user who set the label is in no team that the Repository's settings.policy lists, and not in OWNERS."
}

type labellerUntrusted struct{}

func (labellerUntrusted) decides(in Input) (Verdict, Question, bool) {
	return in.denyWithout(Actor, false, in.Label)
}

func (labellerUntrusted) why() string {
	return "The user who set the label has no write access to this repository and is not in OWNERS."
}

type labellerConfirmed struct{}

func (labellerConfirmed) decides(in Input) (Verdict, Question, bool) {
	return in.askConfirmed(in.Label)
}

func (labellerConfirmed) why() string {
	return "Whether the Git service confirms who set the label is not known yet."
}

type labellerUnconfirmed struct{}

func (labellerUnconfirmed) decides(in Input) (Verdict, Question, bool) {
	return in.denyUnconfirmed(in.Label)
}

func (labellerUnconfirmed) why() string { return "The Git service does not confirm who set the label." }
