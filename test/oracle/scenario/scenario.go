// SPDX-License-Identifier: Apache-2.0

// Package scenario is what Pipelines-as-Code and Plumbline are both told: a repository with
// pipelines, and what happens in it. Everything in a scenario follows from its seed and number.
package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// Branches, labels and paths that scenarios use.
const (
	Main    = "main"
	Release = "release-1"
	Feature = "feature-x"
	Label   = "ship"
)

// Who acts. The repository belongs to an organisation.
const (
	Owner    = "olga" // owns the organisation
	Writer   = "will"
	Triager  = "tria" // may label, and not push
	Member   = "mia"  // of the organisation, where members may read
	Reader   = "rita" // a collaborator who may read
	Stranger = "sam"
)

// MayWrite reports whether a user may push to the repository.
func MayWrite(user string) bool { return user == Owner || user == Writer }

// Scenario is one repository and its history.
type Scenario struct {
	Seed uint64
	N    int
	// Provenance is settings.pipelinerun_provenance; "" leaves it out.
	Provenance string
	// HeadEdits is true when the head of the pull request or the pushed branch has other
	// definitions than main.
	HeadEdits bool
	// Limit is the Repository's concurrency_limit; 0 is none.
	Limit int
	// Defaults are those of the installation that it is played on.
	Defaults  Defaults
	Pipelines []Pipeline
	Acts      []Act
}

// Defaults are what an installation does with pipelines that do not say whether a newer run ends
// the older ones: the two keys enable-cancel-in-progress-on-… of the ConfigMap.
type Defaults struct{ Pulls, Pushes bool }

// DefaultsOf are those of all scenarios of a seed, which share an installation. Four seeds in a row
// have all there are.
func DefaultsOf(seed uint64) Defaults { return Defaults{Pulls: seed&1 != 0, Pushes: seed&2 != 0} }

// Pipeline is one file of .tekton.
type Pipeline struct {
	Name string
	// Generated has the name as metadata.generateName, with a dash behind it.
	Generated bool
	// On are annotations of Pipelines-as-Code without their prefix: "on-event": "[push]".
	On map[string]string
	// Fails ends the run with a failure; Held keeps it running until it is cancelled.
	Fails, Held bool
	// Clones gives the run the secret that it clones with.
	Clones bool
	// Keeps is the annotation max-keep-runs, and Cancels cancel-in-progress; "" leaves them out.
	Keeps, Cancels string
}

// Kind is what happens.
type Kind string

// What happens.
const (
	Push    Kind = "push"    // a commit to Branch
	Tag     Kind = "tag"     // Branch is the tag's name, on main, and on a new commit there if Path is set
	Open    Kind = "open"    // a pull request from Feature to Branch
	Sync    Kind = "sync"    // another commit to the pull request
	Echo    Kind = "echo"    // the push event of a pull request's branch in the repository itself
	Labeled Kind = "label"   // Text is the label
	Comment Kind = "comment" // Text is the comment, {sha} in it the head
	Closed  Kind = "close"   // the pull request is closed
)

// Act is one event.
type Act struct {
	Kind   Kind
	By     string
	Branch string
	// Fork is true for a pull request from a fork of By.
	Fork bool
	Text string
	// Path is the file that the commit changes.
	Path string
	// Message is the commit's.
	Message string
}

// Name is what the scenario's repository and namespace are called.
func (s Scenario) Name() string { return fmt.Sprintf("s%03d", s.N) }

// Opened is the act that opened the pull request before an act, with its own index; false if there
// is none.
func (s Scenario) Opened(act int) (Act, bool) {
	for _, a := range slices.Backward(s.Acts[:act+1]) {
		if a.Kind == Open {
			return a, true
		}
	}
	return Act{}, false
}

// Pipeline is the one with that name; false if there is none.
func (s Scenario) Pipeline(name string) (Pipeline, bool) {
	for _, p := range s.Pipelines {
		if p.Name == name {
			return p, true
		}
	}
	return Pipeline{}, false
}

// String is the scenario for people.
func (s Scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "scenario %d of seed %d", s.N, s.Seed)
	if s.Provenance != "" {
		fmt.Fprintf(&b, ", definitions from %s", s.Provenance)
	}
	if s.HeadEdits {
		b.WriteString(", the head edits .tekton")
	}
	if s.Limit > 0 {
		fmt.Fprintf(&b, ", concurrency_limit %d", s.Limit)
	}
	if s.Defaults.Pulls {
		b.WriteString(", enable-cancel-in-progress-on-pull-requests")
	}
	if s.Defaults.Pushes {
		b.WriteString(", enable-cancel-in-progress-on-push")
	}
	for _, p := range s.Pipelines {
		fmt.Fprintf(&b, "\n  pipeline %s%s", p.Name, p.traits())
	}
	for i, a := range s.Acts {
		fmt.Fprintf(&b, "\n  %d. %s", i+1, a)
	}
	return b.String()
}

func (p Pipeline) traits() string {
	var list []string
	for _, name := range sorted(p.On) {
		list = append(list, name+": "+p.On[name])
	}
	for name, is := range map[string]bool{
		"fails": p.Fails, "held": p.Held, "clones": p.Clones, "generateName": p.Generated,
		"max-keep-runs: " + p.Keeps: p.Keeps != "", "cancel-in-progress: " + p.Cancels: p.Cancels != "",
	} {
		if is {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return " (" + strings.Join(list, "; ") + ")"
}

// String is the act for people.
func (a Act) String() string {
	text := string(a.Kind) + " by " + a.By
	for _, part := range []struct{ name, value string }{
		{"", a.Branch}, {"", a.Text}, {"changing ", a.Path}, {"message ", a.Message},
	} {
		if part.value != "" {
			text += ", " + part.name + fmt.Sprintf("%q", part.value)
		}
	}
	if a.Fork {
		text += ", from a fork"
	}
	return text
}
