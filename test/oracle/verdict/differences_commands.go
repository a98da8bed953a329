// SPDX-License-Identifier: Apache-2.0

package verdict

// aboutCommands are about what comments mean.
func aboutCommands() []Intended {
	return []Intended{
		{
			Name: "two different commands in one comment", Because: "it is unknown which was meant",
			Page: migration, Says: "the first kind of command, in a fixed order, wins",
			Explains: twoCommands,
		},
		{
			Name: "/ok-to-test that starts nothing leaves a check", Because: "GitHub takes neutral for passed",
			Page: migration, Says: "the answer says why nothing starts, and there is no extra check",
			Explains: startsNothing,
		},
		{
			Name: "a pipeline without annotations is started by its name", Because: "it is made for that",
			Page: migration, Says: "a pipeline without annotations is not found",
			Explains: withoutAnnotations,
		},
		{
			Name: "a generateName is named without its dash", Because: "people write the name that they see",
			Page: commands, Says: "or its `generateName` with or without the final dash",
			Explains: withoutDash,
		},
		{
			Name: "/retest and /ok-to-test start what runs already", Because: "its result is not there yet",
			Page: migration, Says: "`/retest` and `/ok-to-test` start pipelines that are running already",
			Explains: runsAlready,
		},
	}
}

// aboutEnds are about what ends runs.
func aboutEnds() []Intended {
	return []Intended{
		{
			Name: "a close ends every run", Because: "no user waits for them any more",
			Page: migration, Says: "a close ends only runs with the annotation `cancel-in-progress:",
			Explains: closeEnds,
		},
		{
			Name: "the author cancels the runs of its own pull request", Because: "they are its runs",
			Page: migration, Says: "| `/cancel` by users who may start runs | also by the pull request's author |",
			Explains: authorCancels,
		},
		{
			Name: "a newer run, or a close, ends what a label has started", Because: "it is older, whatever has started it",
			Page: migration, Says: "| runs of label events | do not end",
			Explains: labelledEnds,
		},
		{
			Name:    "a push ends runs of a pull request of a fork's branch that is called the same",
			Because: "it is another branch",
			Page:    migration, Says: "| pushes | end runs of pull requests from a branch of that name, in a fork too |",
			Explains: pushEndsPull,
		},
		{
			Name: "the close of an untrusted user's pull request asks for approval", Because: "closing is no start",
			Page: migration, Says: "the close of an untrusted user's pull request ends nothing, and asks for approval",
			Explains: closeAsks,
		},
	}
}

// aboutValues are about what placeholders become.
func aboutValues() []Intended {
	return []Intended{{
		Name: "the line ends of a value in a quoted scalar", Because: "a value is data, and no part of the file's text",
		Page: migration, Says: "Values are put into the text of the file before YAML is parsed",
		Explains: linesOfAValue,
	}}
}
