// SPDX-License-Identifier: Apache-2.0

package verdict

import "slices"

const (
	commands = "docs/commands.md"
	language = "docs/language.md"
	template = "docs/templates.md"
	operate  = "docs/operations.md"
	running  = "docs/running.md"
	// migration has all differences in one place.
	migration = "docs/migration.md"
)

// Differences are those that Plumbline wants. Each explains as little as possible: one actor and
// one object.
func Differences() []Intended {
	return slices.Concat(aboutPeople(), aboutCommands(), aboutEnds(), aboutValues())
}

// aboutPeople are about the users who may start runs, and about checks for the others.
func aboutPeople() []Intended {
	return []Intended{
		{
			Name: "a member or reader runs a pull request of a fork", Because: "by default the right to write decides",
			Page: migration, Says: "members of the organisation and collaborators who may only read run their pull requests",
			Explains: readersPull,
		},
		{
			Name: "an approval starts what had run for a member or reader", Because: "nothing had run before it",
			Page: migration, Says: "members of the organisation and collaborators who may only read run their pull requests",
			Explains: readersApproved,
		},
		{
			Name: "a member or reader starts or ends runs by a comment", Because: "by default the right to write decides",
			Page: migration, Says: "members of the organisation and collaborators who may only read run their pull requests",
			Explains: readersComment,
		},
		{
			Name: "a writer's comment runs what waits for approval", Because: "an approval is meant as one, and is of a commit",
			Page:     migration,
			Says:     "a commit that waits for approval runs by a command, not by a comment that `on-comment` matches",
			Explains: remarkRuns,
		},
		{
			Name: "a user without write access labels a pull request", Because: "people may label who may not push",
			Page: migration, Says: "Any user's label starts matching pipelines in the repository itself",
			Explains: triagersLabel,
		},
		{
			Name: "an untrusted user's command shows that it waits for approval", Because: "any user could make it comment",
			Page: migration, Says: "and recorded in the GitEvent; untrusted users get no answer",
			Explains: untrustedCommand,
		},
		{
			Name:    "an untrusted user's command asks for approval of a commit that was approved",
			Because: "an approval stands for its commit",
			Page:    migration, Says: "a command of a user without the right does not change the commit's checks",
			Explains: untrustedAsksAgain,
		},
		{
			Name:    "each push to an untrusted user's pull request shows at once that it waits for approval",
			Because: "untrusted users must not exhaust the calls of an installation",
			Page:    operate, Says: "each once a minute for a pull request; together 20 at once for an installation, then one each 6 s; late ones follow",
			Explains: pushedAgain,
		},
		{
			Name: "a check that waited for approval ends", Because: "it ran nothing",
			Page: migration, Says: "the waiting check ends as skipped",
			Explains: waitingCheckEnds,
		},
		{
			Name: "a check that waits is not that of a run that somebody starts", Because: "the commit still waits",
			Page: migration, Says: "when the commit is approved and not before",
			Explains: stillWaits,
		},
		{
			Name: "a label asks for approval of a commit that was approved", Because: "an approval stands for its commit",
			Page:     commands,
			Says:     "The commit runs again when the pull request is reopened, or when an authorised user adds a label",
			Explains: labelAsks,
		},
		{
			Name: "the author approves its own pull request", Because: "an approval is of a second person",
			Page: migration, Says: "| the author cannot approve |",
			Explains: ownApproval,
		},
		{
			Name:    "an approved commit runs with the definitions of the default branch",
			Because: "a reviewer may have overlooked something",
			Page:    commands, Says: "definitions are those of the default branch |",
			Explains: approvedDefinitions,
		},
		{
			Name: "an untrusted user asks for no CI", Because: "an untrusted user must not conclude a check",
			Page: migration, Says: "`[skip ci]` is checked before the user's right to run",
			Explains: untrustedSkips,
		},
	}
}
