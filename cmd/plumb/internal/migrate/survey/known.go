// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Only says which product starts a pipeline that the other one does not start.
type Only string

// The products.
const (
	OnlyPaC       Only = "Pipelines-as-Code"
	OnlyPlumbline Only = "Plumbline"
)

// Difference is a pipeline that only one of the products starts for an event.
type Difference struct {
	Pipeline string
	By       Only
	// Why is Plumbline's reason.
	Why string
	// Known is the difference that explains it; its page is empty if none does.
	Known
}

// Known is a difference that the documentation names.
type Known struct{ Says, Page string }

// finding returns what the report says.
func (d Difference) finding() Finding {
	f := Finding{Kind: Differs, Topic: Pipelines, Page: d.Page, Says: "only " + string(d.By) + " starts the pipeline: "}
	if d.Page == "" {
		f.Says += d.Why
		f.Remedy = "not known: please report it, with the definition"
		return f
	}
	f.Says += d.Says
	return f
}

const (
	pageOfReferences   = "docs/migration.md#references-to-other-files"
	pageOfPlaceholders = "docs/migration.md#placeholders"
)

// difference explains a difference.
func (p *Planned) difference(of Pipeline, by Only) Difference {
	d := Difference{Pipeline: strings.TrimSuffix(of.Name, "-"), By: by, Why: of.Why}
	for _, rule := range rules() {
		if rule.by == by && rule.applies(p, of) {
			d.Known = rule.Known
			break
		}
	}
	return d
}

// rule recognizes a known difference.
type rule struct {
	by      Only
	applies func(*Planned, Pipeline) bool
	Known
}

// rules are tried in their order.
func rules() []rule {
	return []rule{
		{OnlyPlumbline, mistaken, Known{
			"a file of the directory has a mistake, and Pipelines-as-Code then starts nothing", pageOfStarting}},
		{
			OnlyPlumbline,
			func(_ *Planned, of Pipeline) bool {
				return len(validation.IsDNS1123Subdomain(strings.TrimSuffix(of.Name, "-"))) > 0
			},
			Known{
				"Kubernetes does not accept its name, so that Pipelines-as-Code cannot create it",
				"docs/migration.md#objects-in-the-cluster",
			},
		},
		{OnlyPaC, func(p *Planned, of Pipeline) bool { return of.Mistake == mistakeRefused && p.inlinesMore }, Known{
			`with remote-tasks: "false" only Plumbline inlines Pipelines and Tasks of the directory, and Tekton refuses them`,
			pageOfReferences}},
		{OnlyPaC, reasons("BadReference", "MissingTask", "MissingPipeline", "TooManyReferences"), Known{
			"Plumbline reports its mistake: a reference to another file", pageOfReferences}},
		{OnlyPaC, reasons("BadParam", "SecretHoldsVariable", "SecretInName"), Known{
			"Plumbline reports its mistake: a placeholder", pageOfPlaceholders}},
		{OnlyPaC, reasons("BadAnnotation", "BadExpression", "BadPattern", "BadYAML", "BadType", "BadName", "NoName",
			"DuplicateKey", "DuplicateName", "BadConversion"), Known{"Plumbline reports its mistake", pageOfStarting}},
		{OnlyPaC, reasons("FileTooLarge", "TooLarge", "TooManyDocuments", "TooManyPipelines", "TooManySteps",
			"TooMuchWork", "PayloadTooLarge"), Known{"it exceeds a limit", "docs/language.md#limits"}},
		{OnlyPaC, why("target-namespace"), Known{
			"target-namespace names another Repository of the same URL", pageOfStarting}},
	}
}

// mistaken reports whether a definition of the event has a mistake of its author.
func mistaken(p *Planned, _ Pipeline) bool {
	for _, other := range p.Pipelines {
		if other.Mistake != "" && other.Mistake != mistakeEnded && other.Mistake != mistakeRefused {
			return true
		}
	}
	return false
}

// reasons reports whether a pipeline was refused for one of the reasons.
func reasons(names ...string) func(*Planned, Pipeline) bool {
	return func(_ *Planned, p Pipeline) bool {
		for _, name := range names {
			if p.Mistake == name {
				return true
			}
		}
		return false
	}
}

// why reports whether the decision about a pipeline mentions something.
func why(mentions string) func(*Planned, Pipeline) bool {
	return func(_ *Planned, p Pipeline) bool { return strings.Contains(p.Why, mentions) }
}
