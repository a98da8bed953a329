// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"cmp"
	"slices"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/pac"
)

// Kind says what a finding means for the move.
type Kind string

// The kinds, in the order in which they are shown.
const (
	// Blocks is what has to be fixed, or given up, before the move.
	Blocks Kind = "blocks"
	// Differs is what behaves differently after the move.
	Differs Kind = "differs"
	// Same is what stays as it is.
	Same Kind = "same"
	// NotCompared is an event, or a decision about one pipeline, that could not be compared.
	NotCompared Kind = "not compared"
)

// Topic is what a finding is about.
type Topic string

// The topics.
const (
	Cluster      Topic = "cluster"
	Setting      Topic = "setting"
	Repositories Topic = "repository"
	Pipelines    Topic = "pipeline"
	Access       Topic = "access"
)

// Report is what a move to Plumbline changes.
type Report struct {
	// Blocked is true if a finding blocks the move.
	Blocked       bool             `json:"blocked"`
	Installations []pac.Controller `json:"installations"`
	Repositories  Count            `json:"repositories"`
	Events        Events           `json:"events"`
	Findings      []Finding        `json:"findings"`
	// MissingRights are rights that the account lacks, so that the report is not complete.
	MissingRights []string `json:"missingRights,omitempty"`
}

// Count counts Repositories.
type Count struct {
	Total int `json:"total"`
	// Unchanged are those without a finding.
	Unchanged int `json:"unchanged"`
	// Blocked are those with a finding that blocks the move.
	Blocked int `json:"blocked"`
}

// Events counts the events whose pipelines were compared.
type Events struct {
	Compared int `json:"compared"`
	// Equal are those for which Plumbline starts the same pipelines.
	Equal int `json:"equal"`
}

// Finding is one thing that a user of the cluster notices, or has to do.
type Finding struct {
	Kind  Kind  `json:"kind"`
	Topic Topic `json:"topic"`
	// Says is a sentence, Remedy what to do about it.
	Says   string `json:"says"`
	Remedy string `json:"remedy,omitempty"`
	// Page is the section of the documentation that explains it; empty if none does.
	Page string `json:"page,omitempty"`
	// Objects are those that it is about: "team-a/app", or "team-a/app at 1a2b3c4d: build".
	Objects []string `json:"objects"`
}

// collector collects findings. Findings that say the same become one.
type collector struct {
	findings []Finding
	// touched are the Repositories that a finding of this kind is about.
	touched map[Kind]map[string]bool
	rights  rights
}

// add adds a finding about one object. repository is the Repository that it touches, "" for none.
func (c *collector) add(f Finding, repository, object string) {
	if repository != "" {
		if c.touched == nil {
			c.touched = map[Kind]map[string]bool{Blocks: {}, Differs: {}}
		}
		c.touched[f.Kind][repository] = true
	}
	for i := range c.findings {
		known := &c.findings[i]
		if known.Kind == f.Kind && known.Topic == f.Topic && known.Says == f.Says && known.Page == f.Page {
			if !slices.Contains(known.Objects, object) {
				known.Objects = append(known.Objects, object)
			}
			return
		}
	}
	f.Objects = []string{object}
	c.findings = append(c.findings, f)
}

// skip reports that something was not compared. remedy says what to do about it, "" for nothing.
func (c *collector) skip(why, remedy, object string) {
	c.add(Finding{Kind: NotCompared, Topic: Pipelines, Says: why, Remedy: remedy}, "", object)
}

// finish completes a report with what was collected. What concerns the cluster comes first, then
// what concerns many objects.
func (c *collector) finish(r *Report) {
	kinds := []Kind{Blocks, Differs, Same, NotCompared}
	topics := []Topic{Cluster, Setting, Access, Repositories, Pipelines}
	slices.SortStableFunc(c.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
			cmp.Compare(slices.Index(topics, a.Topic), slices.Index(topics, b.Topic)),
			cmp.Compare(len(b.Objects), len(a.Objects)))
	})
	r.Findings = c.findings
	r.Blocked = slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Kind == Blocks })
	r.Repositories.Blocked = len(c.touched[Blocks])
	r.Repositories.Unchanged = r.Repositories.Total - r.Repositories.Blocked
	for name := range c.touched[Differs] {
		if !c.touched[Blocks][name] {
			r.Repositories.Unchanged--
		}
	}
	r.MissingRights = c.rights.missing()
}
