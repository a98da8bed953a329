// SPDX-License-Identifier: Apache-2.0

package rules

import "github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"

// rule is one sentence of the policy.
type rule interface {
	// decides returns the rule's verdict, and its question if that is Asks; false when it has
	// nothing to say about the event.
	decides(in Input) (Verdict, Question, bool)
	// why is the sentence that explains the verdict to people.
	why() string
}

// rules are asked in this order.
func rules() []rule {
	return []rule{
		restricted{}, ownApproval{}, ownCancel{},
		commenterClosed{}, commenterUnknown{}, commenterUnlisted{}, commenterStranger{}, cancels{},
		pushed{},
		labellerUnknown{}, labellerUnlisted{}, labellerStranger{}, labellerConfirmed{}, labellerUnconfirmed{},
		approved{}, pullClosed{}, appsBranch{},
		authorUnknown{}, authorUnlisted{}, authorStranger{},
		actorUnknown{}, actorUnlisted{}, actorStranger{}, actorConfirmed{}, actorUnconfirmed{},
		listed{}, mayRun{},
	}
}

// says is what a rule returns that asks nothing.
func says(v Verdict, applies bool) (Verdict, Question, bool) { return v, Question{}, applies }

// unknown asks for the next fact about a person, if it depends on one.
func (in Input) unknown(who Person, applies bool) (Verdict, Question, bool) {
	_, ask := in.right(who)
	return Asks, Question{who, ask}, applies && ask != ""
}

// without denies what a person did who has no right to it, if a policy applies or if none does.
func (in Input) without(who Person, policed, applies bool) (Verdict, Question, bool) {
	has, _ := in.right(who)
	return says(Unapproved, applies && in.policed(who) == policed && !has)
}

// confirmed asks whether the Git service itself says who acted.
func (in Input) confirmed(applies bool) (Verdict, Question, bool) {
	_, known := in.Known[Question{Actor, Confirmed}]
	return Asks, Question{Actor, Confirmed}, applies && !known
}

func (in Input) unconfirmed(applies bool) (Verdict, Question, bool) {
	return says(Unapproved, applies && !in.Known[Question{Actor, Confirmed}])
}

func (in Input) pull() bool { return in.Trigger == v1alpha1.TriggerPullRequest }

// ownBranch reports whether the pull request's branch lives in this repository, unless a policy
// says who may start it. Then only accounts with write access can push to it.
func (in Input) ownBranch() bool { return in.SameRepository && !in.policed(Author) }

// acted reports whether the decision depends on who changed the pull request. It does not for a
// comment, whose author has been asked for already, nor for a branch of the repository, which only
// writers can change.
func (in Input) acted() bool { return in.pull() && !in.Comment && !in.ownBranch() }

type restricted struct{}

func (restricted) decides(in Input) (Verdict, Question, bool) {
	return says(Unapproved, in.Restricted && (in.Trigger != v1alpha1.TriggerPush || in.Comment))
}

func (restricted) why() string {
	return "The Repository's settings have a policy of who may start runs of pull requests, which this version cannot evaluate, so nobody may."
}

type ownApproval struct{}

func (ownApproval) decides(in Input) (Verdict, Question, bool) {
	return says(Unapproved, in.Command == OkToTest && in.Own)
}

func (ownApproval) why() string {
	return "The author of a pull request cannot approve it; somebody else has to."
}

type ownCancel struct{}

func (ownCancel) decides(in Input) (Verdict, Question, bool) {
	return says(Allowed, in.pull() && in.Command == Cancel && in.Own)
}

func (ownCancel) why() string { return "The author of a pull request may cancel its runs." }

type commenterClosed struct{}

func (commenterClosed) decides(in Input) (Verdict, Question, bool) {
	return says(Unapproved, in.Comment && in.closed(Commenter))
}

func (commenterClosed) why() string {
	return "The Repository has a settings.policy that names no team for such a comment, so nobody's starts anything."
}

type commenterUnknown struct{}

func (commenterUnknown) decides(in Input) (Verdict, Question, bool) {
	return in.unknown(Commenter, in.Comment)
}

func (commenterUnknown) why() string {
	return "Whether the author of the comment may start runs of this repository is not known yet."
}

type commenterUnlisted struct{}

func (commenterUnlisted) decides(in Input) (Verdict, Question, bool) {
	return in.without(Commenter, true, in.Comment)
}

func (commenterUnlisted) why() string {
	return "The author of the comment is in no team that the Repository's settings.policy lists for it, and not in OWNERS."
}

type commenterStranger struct{}

func (commenterStranger) decides(in Input) (Verdict, Question, bool) {
	return in.without(Commenter, false, in.Comment)
}

func (commenterStranger) why() string {
	return "The author of the comment has no write access to this repository and is not in OWNERS."
}

type cancels struct{}

func (cancels) decides(in Input) (Verdict, Question, bool) {
	return says(Allowed, in.Comment && in.Command == Cancel)
}

func (cancels) why() string {
	return "The author of the comment has write access to this repository or is in OWNERS, so may cancel runs."
}

type pushed struct{}

func (pushed) decides(in Input) (Verdict, Question, bool) {
	return says(Allowed, in.Trigger == v1alpha1.TriggerPush)
}

func (pushed) why() string { return "Whoever can push to the repository may start its pipelines." }

type labellerUnknown struct{}

func (labellerUnknown) decides(in Input) (Verdict, Question, bool) {
	return in.unknown(Actor, in.Label)
}

func (labellerUnknown) why() string {
	return "Whether who set the label may start runs of this repository is not known yet."
}

type labellerUnlisted struct{}

func (labellerUnlisted) decides(in Input) (Verdict, Question, bool) {
	return in.without(Actor, true, in.Label)
}

func (labellerUnlisted) why() string {
	return "Who set the label is in no team that the Repository's settings.policy lists, and not in OWNERS."
}

type labellerStranger struct{}

func (labellerStranger) decides(in Input) (Verdict, Question, bool) {
	return in.without(Actor, false, in.Label)
}

func (labellerStranger) why() string {
	return "Who set the label has no write access to this repository and is not in OWNERS."
}

type labellerConfirmed struct{}

func (labellerConfirmed) decides(in Input) (Verdict, Question, bool) { return in.confirmed(in.Label) }

func (labellerConfirmed) why() string {
	return "Whether the Git service confirms who set the label is not known yet."
}

type labellerUnconfirmed struct{}

func (labellerUnconfirmed) decides(in Input) (Verdict, Question, bool) {
	return in.unconfirmed(in.Label)
}

func (labellerUnconfirmed) why() string { return "The Git service does not confirm who set the label." }
