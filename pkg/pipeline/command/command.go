// SPDX-License-Identifier: Apache-2.0

// Package command reads the commands that people write in comments, such as "/test build". It is
// pure: it knows no Git service, no pipelines and no permissions.
package command

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Kind is what a command asks for.
type Kind string

// The kinds, as they are written behind the slash.
const (
	Test     Kind = "test"
	Retest   Kind = "retest"
	OkToTest Kind = "ok-to-test"
	Cancel   Kind = "cancel"
	// Why asks what became of each pipeline. It starts and changes nothing.
	Why Kind = "why"
)

// maxComment is the bytes of a comment that are read: 65,536 characters, GitHub's limit and the
// longest that is taken of GitLab, have up to 4 bytes each.
const maxComment = 256 << 10

// The reasons of the faults.
const (
	// ReasonContradictory is that of a comment whose commands exclude each other.
	ReasonContradictory = "ContradictoryCommands"
	// ReasonMalformed is that of a command that is not written as it has to be.
	ReasonMalformed = "MalformedCommand"
)

// Command is what the comment of a person asks for.
type Command struct {
	Kind Kind
	// Names are the pipelines that it is about, in the order they are written in and each once.
	// None means all.
	Names []string
	// Args are the values for params of this one event; nil when there are none.
	Args map[string]string
	// SHA is the commit that OkToTest approves, in lower case: 7 to 64 hexadecimal digits, "" when
	// it names none.
	SHA string
	// Branch and Tag say what a commit that is commented on is the head of. At most one of them is
	// set.
	Branch, Tag string
}

// EventType returns Pipelines-as-Code's name of the event type, which labels, expressions and
// templates see.
func (c *Command) EventType() string {
	if len(c.Names) == 0 && c.Kind != OkToTest {
		return string(c.Kind) + "-all-comment"
	}
	return string(c.Kind) + "-comment"
}

// Parse returns the command of a comment, or nil. prefix is the Repository's setting for the word
// that commands begin with: with "ci" the command /test is written "/ci test". With an invalid
// prefix (see Prefix) there are no commands. onCommit is true for a comment on a commit. Commands
// there may name a branch or a tag. /ok-to-test and /why are not commands there.
//
// Commands of one kind are merged: "/test a" and "/test b" on two lines are "/test a b"; together
// with "/test" they are "/test". The error is Invalid and written for the comment's author:
// commands of two kinds, or a malformed one. The Command that is returned with it has only the Kind
// of the first command.
func Parse(comment, prefix string, onCommit bool) (*Command, error) {
	word, valid := prefixOf(prefix)
	if !valid {
		return nil, nil // a condition of the Repository says so
	}
	r := reader{prefix: word, onCommit: onCommit}
	for _, line := range lines(comment) {
		if err := r.line(line); err != nil {
			return &Command{Kind: r.found.Kind}, err
		}
	}
	if r.found != nil {
		r.found.Names = distinct(r.found.Names)
	}
	return r.found, nil
}

// Prefix returns the word that commands begin with, as the setting gitops_command_prefix has it:
// "ci" and "/ci" are the same. "" is no prefix. The error is Invalid: a slash alone, or something
// with spaces in it.
func Prefix(setting string) (string, error) {
	word, valid := prefixOf(setting)
	if !valid {
		return "", fault.Invalidf(reasonBadCommandPrefix,
			"the prefix of commands is %q, which is not one word: with ci the command /test is written /ci test", short(setting))
	}
	return word, nil
}

func prefixOf(setting string) (word string, valid bool) {
	word = strings.TrimPrefix(setting, "/")
	return word, (setting == "" || word != "") && !strings.ContainsFunc(word, isSpaceOrControl)
}

// reader reads a comment line by line.
type reader struct {
	prefix   string
	onCommit bool
	// found is what was found so far; nil while there is nothing.
	found *Command
	// all is true when a command about all pipelines was found.
	all bool
	// follows is true while lines that have nothing but arguments belong to the command above them.
	follows bool
}

// line reads one line that people see.
func (r *reader) line(line string) error {
	kind, rest, isCommand := r.begins(line)
	if !isCommand {
		return r.more(line)
	}
	if kind == OkToTest {
		return r.approves(rest)
	}
	read, err := r.words(rest)
	if err := r.begin(kind, err); err != nil {
		return err
	}
	r.all = r.all || len(read.names) == 0
	return r.add(read)
}

// begins reports whether a line begins with a command.
func (r *reader) begins(line string) (kind Kind, rest string, isCommand bool) {
	text, found := strings.CutPrefix(trim(line), "/")
	if !found {
		return "", "", false
	}
	if r.prefix != "" {
		word, behind := cutWord(text)
		if word != r.prefix {
			return "", "", false
		}
		text = behind
	}
	word, rest := cutWord(text)
	kind = Kind(word)
	switch kind {
	case Test, Retest, Cancel:
		return kind, rest, true
	case OkToTest, Why: // nothing answers on a commit
		return kind, rest, !r.onCommit
	}
	return "", "", false
}

// begin notes that there is a command. The error is that of its words.
func (r *reader) begin(kind Kind, err error) error {
	if r.found == nil {
		r.found = &Command{Kind: kind}
	}
	if r.found.Kind != kind {
		return fault.Invalidf(ReasonContradictory,
			"nothing was done: this comment has two different commands, /%s and /%s. Write one comment for each command",
			r.found.Kind, kind)
	}
	r.follows = err == nil
	return err
}

// more reads a line without a command. One that has nothing but arguments belongs to the command
// above it.
func (r *reader) more(line string) error {
	if !r.follows || !beginsArgument(trim(line)) {
		r.follows = false
		return nil
	}
	read, err := r.words(line)
	if err != nil {
		return err
	}
	if len(read.names) > 0 || read.branch != "" || read.tag != "" { // a sentence
		r.follows = false
		return nil
	}
	return r.add(read)
}

// add puts words to the command that was found.
func (r *reader) add(read words) error {
	c := r.found
	if err := c.at(read.branch, read.tag); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(read.args)) { // of several the reply always names the same one
		if known, found := c.Args[key]; found && known != read.args[key] {
			return malformedf("the argument %s has two values", short(key))
		}
	}
	if c.Args == nil && len(read.args) > 0 {
		c.Args = map[string]string{}
	}
	maps.Copy(c.Args, read.args)
	if c.Names = append(c.Names, read.names...); r.all {
		c.Names = nil
	}
	return nil
}

// at notes which branch or tag the command names.
func (c *Command) at(branch, tag string) error {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	if differ(c.Branch, branch) || differ(c.Tag, tag) {
		return fault.Invalidf(ReasonContradictory,
			"the comment names two branches or two tags: nothing was done. Write a comment for each")
	}
	c.Branch, c.Tag = cmp.Or(c.Branch, branch), cmp.Or(c.Tag, tag)
	if c.Branch != "" && c.Tag != "" {
		return fault.Invalidf(ReasonContradictory,
			"the comment names a branch and a tag: nothing was done. Write a comment for each")
	}
	return nil
}

// approves reads the words after ok-to-test: a commit, or nothing. With other words it is no
// command, as in Pipelines-as-Code. Arguments are refused: the reviewer has not seen what they
// would run.
func (r *reader) approves(rest string) error {
	sha := strings.ToLower(trim(rest))
	switch {
	case strings.Contains(sha, "="):
		return r.begin(OkToTest, malformedf("ok-to-test takes no arguments"))
	case sha != "" && !isCommit(sha):
		r.follows = false
		return nil
	}
	if err := r.begin(OkToTest, nil); err != nil {
		return err
	}
	r.follows = false
	if r.found.SHA != "" && sha != "" && r.found.SHA != sha {
		return fault.Invalidf(ReasonContradictory,
			"the comment approves two commits: nothing was done. Write a comment for the one that is to run")
	}
	r.found.SHA = cmp.Or(r.found.SHA, sha)
	return nil
}

// isCommit reports whether text, in lower case, is the beginning of a commit id or all of it.
func isCommit(text string) bool {
	const shortest, longest = 7, 64 // Pipelines-as-Code's shortest, and a SHA-256
	return len(text) >= shortest && len(text) <= longest && strings.Trim(text, "0123456789abcdef") == ""
}

// distinct returns the names, each once.
func distinct(names []string) []string {
	seen := make(map[string]bool, len(names))
	return slices.DeleteFunc(names, func(name string) bool {
		known := seen[name]
		seen[name] = true
		return known
	})
}
