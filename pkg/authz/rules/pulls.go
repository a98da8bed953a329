// SPDX-License-Identifier: Apache-2.0

package rules

type approved struct{}

func (approved) decides(in Input) (Verdict, Question, bool) {
	return verdict(Allowed, in.pull() && in.Approved)
}

func (approved) why() string { return "A user who may approve this commit has done so." }

type pullClosed struct{}

func (pullClosed) decides(in Input) (Verdict, Question, bool) {
	return verdict(Unapproved, in.pull() && in.closed(Author))
}

func (pullClosed) why() string {
	return "The Repository's settings.policy names no team for pull requests, so none starts a run by itself."
}

// appsBranch is for dependency bots. It does not apply if there is a policy, which lists who may.
type appsBranch struct{}

func (appsBranch) decides(in Input) (Verdict, Question, bool) {
	return verdict(Allowed, in.pull() && in.ownBranch() && in.App)
}

func (appsBranch) why() string {
	return "The branch of the pull request lives in this repository, and its author is an App."
}

type authorUnknown struct{}

func (authorUnknown) decides(in Input) (Verdict, Question, bool) {
	return in.askAbout(Author, in.pull())
}

func (authorUnknown) why() string {
	return "Whether the author of the pull request may start runs of this repository is not known yet."
}

type authorUnlisted struct{}

func (authorUnlisted) decides(in Input) (Verdict, Question, bool) {
	return in.denyWithout(Author, true, in.pull())
}

func (authorUnlisted) why() string {
	return "The author of the pull request is in no team that the Repository's settings.policy lists, and not in OWNERS."
}

type authorUntrusted struct{}

func (authorUntrusted) decides(in Input) (Verdict, Question, bool) {
	return in.denyWithout(Author, false, in.pull())
}

func (authorUntrusted) why() string {
	return "The author of the pull request has no write access to this repository and is not in OWNERS."
}

type actorUnknown struct{}

func (actorUnknown) decides(in Input) (Verdict, Question, bool) {
	return in.askAbout(Actor, in.acted())
}

func (actorUnknown) why() string {
	return "Whether the user who changed the pull request may start runs of this repository is not known yet."
}

type actorUnlisted struct{}

func (actorUnlisted) decides(in Input) (Verdict, Question, bool) {
	return in.denyWithout(Actor, true, in.acted())
}

func (actorUnlisted) why() string {
	return "Its author may start pipelines by the Repository's settings.policy, but the user who changed it may not."
}

type actorUntrusted struct{}

func (actorUntrusted) decides(in Input) (Verdict, Question, bool) {
	return in.denyWithout(Actor, false, in.acted())
}

func (actorUntrusted) why() string {
	return "Its author may start pipelines here, but the user who changed it may not."
}

type actorConfirmed struct{}

func (actorConfirmed) decides(in Input) (Verdict, Question, bool) { return in.askConfirmed(in.acted()) }

func (actorConfirmed) why() string {
	return "Whether the Git service confirms who changed the pull request is not known yet."
}

type actorUnconfirmed struct{}

func (actorUnconfirmed) decides(in Input) (Verdict, Question, bool) {
	return in.denyUnconfirmed(in.acted())
}

func (actorUnconfirmed) why() string {
	return "The Git service does not show who pushed this commit (is the fork private?), so it needs approval."
}

type listed struct{}

func (listed) decides(in Input) (Verdict, Question, bool) {
	return verdict(Allowed, in.pull() && in.policed(Author))
}

func (listed) why() string {
	return "The Repository's settings.policy lists the author of the pull request, or trusts or OWNERS name it."
}

type mayRun struct{}

func (mayRun) decides(in Input) (Verdict, Question, bool) { return verdict(Allowed, in.pull()) }

func (mayRun) why() string {
	return "The author of the pull request has write access to this repository or counts as a user who has."
}
