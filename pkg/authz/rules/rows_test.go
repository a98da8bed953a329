// SPDX-License-Identifier: Apache-2.0

package rules

import "github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"

// rows are the policy, case by case.
func rows() map[string]row {
	all := map[string]row{}
	for _, part := range []map[string]row{pulls(), labels(), comments(), policies(), widened()} {
		for name, r := range part {
			if _, twice := all[name]; twice {
				panic(name)
			}
			all[name] = r
		}
	}
	return all
}

func list(all ...string) []string { return all }

func pulls() map[string]row {
	return map[string]row{
		"a push is allowed": {in: push(), want: Allowed, reason: "can push"},
		"a merge group is allowed": {
			in: Input{Trigger: v1alpha1.TriggerMergeGroup}.restricted(), want: Allowed, reason: "merge into it"},
		"a writer's pull request from a branch of the same repository is allowed, whatever the actor": {
			in: here(), facts: list("author writer"), want: Allowed, asked: list("author writer"), reason: "has write access"},
		"that of a member who may only read is not approved": {
			in: here(), facts: list("author member"), asked: list("author writer", "author owner"),
			reason: "The author of the pull request has no write access"},
		"unless members count": {in: here().members(), facts: list("author member"), want: Allowed,
			asked: list("author writer", "author member"), reason: "counts as"},
		"or OWNERS name it": {in: here(), facts: list("author owner"), want: Allowed,
			asked: list("author writer", "author owner"), reason: "counts as"},
		"or its account is trusted": {in: here().trusts(), facts: list("author trusted"), want: Allowed,
			asked: list("author trusted"), reason: "counts as"},
		"or somebody has approved the commit":         {in: here().approved(), want: Allowed, reason: "has done so"},
		"that of an App is allowed without a look-up": {in: here().app(), want: Allowed, reason: "its author is an App"},
		"an App's from a fork is not approved": {in: fork().app(), asked: list("author writer", "author owner"),
			reason: "The author of the pull request has no write access"},
		"a pull request from a fork by an untrusted user is not approved": {
			in: fork(), asked: list("author writer", "author owner"),
			reason: "The author of the pull request has no write access"},
		"a pull request from a fork by a writer, who is also the actor, is allowed": {
			in: fork(), facts: list("author writer", "actor writer", "actor confirmed"), want: Allowed,
			asked: list("author writer", "actor writer", "actor confirmed"), reason: "has write access"},
		"an untrusted actor on a writer's pull request from a fork is not approved": {
			in: fork(), facts: list("author writer", "actor confirmed"),
			asked: list("author writer", "actor writer", "actor owner"), reason: "but the user who changed it may not"},
		"a writer's act on an untrusted user's pull request is not approved": {
			in: fork(), facts: list("actor writer", "actor confirmed"), asked: list("author writer", "author owner"),
			reason: "The author of the pull request has no"},
		"an unconfirmed act of a writer is not approved": {
			in: fork(), facts: list("author writer", "actor writer"),
			asked: list("author writer", "actor writer", "actor confirmed"), reason: "does not show who pushed"},
		"OWNERS name the author and the actor": {
			in: fork(), facts: list("author owner", "actor owner", "actor confirmed"), want: Allowed,
			asked: list("author writer", "author owner", "actor writer", "actor owner", "actor confirmed"), reason: "counts as"},
		"OWNERS name the author but not the actor": {
			in: fork(), facts: list("author owner"), asked: list("author writer", "author owner", "actor writer", "actor owner"),
			reason: "but the user who changed it may not"},
		"an untrusted user's commit that is approved runs": {
			in: fork().approved(), want: Allowed, reason: "has done so",
		},
		"a restriction that cannot be evaluated denies a pull request": {in: here().restricted(), reason: "cannot evaluate"},
		"and a writer's comment": {
			in: here().comment("").restricted(), facts: list("commenter writer"), reason: "cannot evaluate",
		},
		"and a comment on a commit": {
			in: push().comment(Test).restricted(), facts: list("commenter writer"), reason: "cannot evaluate",
		},
		"and what is approved": {
			in: fork().approved().restricted(), reason: "cannot evaluate",
		},
		"but no push": {in: push().restricted(), want: Allowed,
			reason: "can push"},
		"an empty input is not approved": {reason: "No rule allows"},
		"an unknown trigger is not approved": {
			in: Input{Trigger: "workflow_run", SameRepository: true}, reason: "No rule allows",
		},
	}
}

func labels() map[string]row {
	return map[string]row{
		"an untrusted user's label is not approved on a branch of the same repository": {
			in: here().label(), asked: list("actor writer", "actor owner"), reason: "The user who set the label has no"},
		"an untrusted user's label is not approved on a writer's fork": {
			in: fork().label(), facts: list("author writer"), asked: list("actor writer", "actor owner"),
			reason: "The user who set the label has no"},
		"an untrusted user's label on an approved commit starts nothing": {
			in: fork().label().approved(), asked: list("actor writer", "actor owner"),
			reason: "The user who set the label has no"},
		"a writer's label on a branch of the same repository is allowed": {
			in: here().label(), facts: list("actor writer", "actor confirmed", "author writer"), want: Allowed,
			asked: list("actor writer", "actor confirmed", "author writer"), reason: "has write access"},
		"a writer's label on a reader's pull request starts nothing": {
			in: here().label(), facts: list("actor writer", "actor confirmed", "author member"), asked: list("actor writer",
				"actor confirmed", "author writer", "author owner"), reason: "The author of the pull request has no"},
		"a writer's label on an App's branch is allowed": {
			in: here().label().app(), facts: list("actor writer", "actor confirmed"), want: Allowed,
			asked: list("actor writer", "actor confirmed"), reason: "its author is an App"},
		"an App's label on its own branch is not approved": {
			in: here().label().app(), asked: list("actor writer", "actor owner"), reason: "The user who set the label has no"},
		"an unconfirmed label is not approved": {
			in: here().label(), facts: list("actor writer"), asked: list("actor writer", "actor confirmed"),
			reason: "does not confirm who set the label"},
		"a writer's label on a writer's fork is allowed": {
			in: fork().label(), facts: list("actor writer", "actor confirmed", "author writer"), want: Allowed,
			asked: list("actor writer", "actor confirmed", "author writer"), reason: "has write access"},
		"a writer's label never makes an untrusted user's pull request run": {
			in: fork().label(), facts: list("actor writer", "actor confirmed"),
			asked:  list("actor writer", "actor confirmed", "author writer", "author owner"),
			reason: "The author of the pull request has no"},
		"a label of somebody in OWNERS on a branch of the same repository is allowed": {
			in: here().label(), facts: list("actor owner", "actor confirmed", "author writer"), want: Allowed,
			asked: list("actor writer", "actor owner", "actor confirmed", "author writer"), reason: "has write access"},
		"a label of somebody whom the policy does not list starts nothing": {
			in: here().label().policy("team", ""), facts: list("actor writer", "author listed"),
			asked: list("actor listed", "actor owner"), reason: "The user who set the label is in no team"},
	}
}

func comments() map[string]row {
	return map[string]row{
		"an untrusted user's comment is not approved, on whatever pull request": {
			in: here().comment(""), asked: list("commenter writer", "commenter owner"),
			reason: "The author of the comment has no"},
		"a writer's comment on a branch of the same repository is allowed": {
			in: here().comment(""), facts: list("commenter writer", "author writer"), want: Allowed,
			asked: list("commenter writer", "author writer"), reason: "has write access"},
		"a writer's comment on a writer's fork is allowed": {
			in: fork().comment(""), facts: list("commenter writer", "author writer"), want: Allowed,
			asked: list("commenter writer", "author writer"), reason: "has write access"},
		"a writer's comment never makes an untrusted user's pull request run": {
			in: fork().comment(Test), facts: list("commenter writer"),
			asked: list("commenter writer", "author writer", "author owner"), reason: "The author of the pull request has no"},
		"unless the commit is approved": {
			in: fork().comment(Test).approved(), facts: list("commenter writer"), want: Allowed, asked: list("commenter writer"),
			reason: "has done so"},
		"an untrusted user's command on an approved commit starts nothing": {
			in: fork().comment(Retest).approved(), asked: list("commenter writer", "commenter owner"),
			reason: "The author of the comment has no"},
		"an untrusted user's comment on a commit starts nothing": {
			in: push().comment(Test), asked: list("commenter writer", "commenter owner"),
			reason: "The author of the comment has no"},
		"a writer's command on a commit is allowed": {
			in: push().comment(Test), facts: list("commenter writer"), want: Allowed, asked: list("commenter writer"),
			reason: "can push"},
		"authors do not approve their own pull requests": {
			in: fork().comment(OkToTest).own().approved(), facts: list("commenter writer"), reason: "cannot approve it"},
		"authors cancel their own": {
			in: fork().comment(Cancel).own(), want: Allowed, reason: "may cancel its runs",
		},
		"but not what was pushed": {in: push().comment(Cancel).own(),
			asked: list("commenter writer", "commenter owner"), reason: "The author of the comment has no"},
		"an untrusted user cancels nothing": {in: fork().comment(Cancel),
			asked: list("commenter writer", "commenter owner"), reason: "The author of the comment has no"},
		"a writer cancels an untrusted user's": {in: fork().comment(Cancel), facts: list("commenter writer"), want: Allowed,
			asked: list("commenter writer"), reason: "may cancel"},
		"a writer asks about an untrusted user's": {in: fork().comment(Why), facts: list("commenter writer"), want: Allowed,
			asked: list("commenter writer"), reason: "may ask"},
		"its author gets no answer": {in: fork().comment(Why).own(),
			asked: list("commenter writer", "commenter owner"), reason: "The author of the comment has no"},
		"somebody in OWNERS comments as well": {in: here().comment(Test), facts: list("commenter owner", "author writer"),
			want: Allowed, asked: list("commenter writer", "commenter owner", "author writer"), reason: "has write access"},
		"a comment on a reader's pull request": {in: here().comment(Test), facts: list("commenter writer"),
			asked: list("commenter writer", "author writer", "author owner"), reason: "The author of the pull request has no"},
		"a trusted account has no say by that": {in: here().comment(Test).trusts(), facts: list("commenter trusted"),
			asked: list("commenter writer", "commenter owner"), reason: "The author of the comment"},
	}
}

func policies() map[string]row {
	return map[string]row{
		"a policy counts on branches of the repository too": {
			in: here().policy("team", ""), facts: list("author writer"), asked: list("author listed", "author owner"),
			reason: "The author of the pull request is in no team"},
		"who is listed and acted runs": {
			in: fork().policy("team", ""), facts: list("author listed", "actor listed", "actor confirmed"), want: Allowed,
			asked: list("author listed", "actor listed", "actor confirmed"), reason: "lists the author"},
		"who acted has to be listed as well": {
			in: here().policy("team", ""), facts: list("author listed", "actor writer"),
			asked: list("author listed", "actor listed", "actor owner"), reason: "but the user who changed it may not"},
		"OWNERS count beside a policy": {
			in: here().policy("team", ""), facts: list("author owner", "actor listed", "actor confirmed"), want: Allowed,
			asked: list("author listed", "author owner", "actor listed", "actor confirmed"), reason: "OWNERS name it"},
		"members do not": {
			in: here().policy("team", "").members(), facts: list("author member"), asked: list("author listed", "author owner"),
			reason: "in no team"},
		"without a list for pull requests, no user may start one": {
			in: here().policy("", "team"), facts: list("author owner"), reason: "names no team for pull requests",
		},
		"one of empty strings neither": {
			in: here().policy(",, ", "team").trusts(), facts: list("author trusted"), reason: "names no team for pull requests",
		},
		"without a list, no user's label counts": {in: here().label().policy("", "team"),
			facts: list("actor owner"), reason: "The user who set the label is in no team"},
		"without a list for commands, no user may test": {in: here().comment(Test).policy("team", ""),
			facts: list("commenter owner"), reason: "names no team for such a comment"},
		"what is approved runs although no pull request does itself": {
			in: fork().comment(OkToTest).policy("", "team").approved(), facts: list("commenter listed"), want: Allowed,
			asked: list("commenter listed"), reason: "has done so",
		},
		"other comments are of the list of pull requests": {in: here().comment("").policy("", "team"),
			facts: list("commenter listed"), reason: "names no team for such a comment"},
		"a command of a writer who is not listed starts nothing": {
			in: here().comment(Test).policy("team", "team"), facts: list("commenter writer"),
			asked: list("commenter listed", "commenter owner"), reason: "is in no team"},
		"a command of somebody listed on a pull request of somebody listed": {
			in: here().comment(Test).policy("team", "team"), facts: list("commenter listed", "author listed"), want: Allowed,
			asked: list("commenter listed", "author listed"), reason: "lists the author"},
		"to cancel is for writers whatever the policy": {
			in: fork().comment(Cancel).policy("", ""), facts: list("commenter writer"), want: Allowed,
			asked: list("commenter writer"), reason: "may cancel"},
		"a policy is not about pushes": {in: push().policy("", ""), want: Allowed, reason: "can push"},
		"but about commands on commits": {
			in: push().comment(Test).policy("", "team"), facts: list("commenter writer"),
			asked: list("commenter listed", "commenter owner"), reason: "is in no team"},
	}
}

func widened() map[string]row {
	return map[string]row{
		"members run where they count": {
			in: fork().members(), facts: list("author member", "actor member", "actor confirmed"), want: Allowed,
			asked:  list("author writer", "author member", "actor writer", "actor member", "actor confirmed"),
			reason: "counts as"},
		"a trusted account runs its own without a question about its access": {
			in: fork().trusts(), facts: list("author trusted", "actor trusted", "actor confirmed"), want: Allowed,
			asked: list("author trusted", "actor trusted", "actor confirmed"), reason: "counts as"},
		"an untrusted actor on a trusted account's pull request is not approved": {
			in: fork().trusts(), facts: list("author trusted"), asked: list("author trusted", "actor trusted", "actor writer",
				"actor owner"), reason: "but the user who changed it may not"},
		"a trusted account counts beside a policy": {
			in: here().policy("team", "").trusts(), facts: list("author trusted", "actor trusted", "actor confirmed"),
			want:  Allowed,
			asked: list("author trusted", "actor trusted", "actor confirmed"), reason: "trusts"},
	}
}
