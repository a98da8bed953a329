// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"slices"
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

// difference is a pipeline that only one of the products starts for an event.
type difference struct {
	Finding
	pipeline string
}

// known is a difference that the documentation names.
type known struct{ says, page string }

const (
	pageOfReferences   = "docs/migration.md#references-to-other-files"
	pageOfPlaceholders = "docs/migration.md#placeholders"
)

// difference explains a difference.
func (p *Planned) difference(of Pipeline, by Only) difference {
	f := Finding{Kind: Differs, Topic: Pipelines, Says: "only " + string(by) + " starts the pipeline: "}
	for _, rule := range rules() {
		if rule.by == by && rule.applies(p, of) {
			f.Says, f.Page = f.Says+rule.says, rule.page
			return difference{f, strings.TrimSuffix(of.Name, "-")}
		}
	}
	f.Says, f.Remedy = f.Says+of.Why, "not known: please report it, with the definition"
	return difference{f, strings.TrimSuffix(of.Name, "-")}
}

// rule recognizes a known difference.
type rule struct {
	by      Only
	applies func(*Planned, Pipeline) bool
	known
}

// rules are tried in their order.
func rules() []rule {
	return []rule{
		{OnlyPlumbline, stopped, known{
			"a file of the directory has a mistake, and Pipelines-as-Code then starts nothing", pageOfStarting}},
		{
			OnlyPlumbline,
			func(_ *Planned, of Pipeline) bool {
				return len(validation.IsDNS1123Subdomain(strings.TrimSuffix(of.Name, "-"))) > 0
			},
			known{
				"Kubernetes does not accept its name, so that Pipelines-as-Code cannot create it",
				"docs/migration.md#objects-in-the-cluster",
			},
		},
		{OnlyPaC, func(p *Planned, of Pipeline) bool { return of.Mistake == mistakeRefused && p.inlinesMore }, known{
			`with remote-tasks: "false" only Plumbline inlines Pipelines and Tasks of the directory, and Tekton refuses them`,
			pageOfReferences}},
		{OnlyPaC, reasons("BadReference", "MissingTask", "MissingPipeline", "TooManyReferences"), known{
			"Plumbline reports its mistake: a reference to another file", pageOfReferences}},
		{OnlyPaC, reasons("BadParam", "SecretHoldsVariable"), known{
			"Plumbline reports its mistake: a placeholder", pageOfPlaceholders}},
		{OnlyPaC, reasons("BadAnnotation", "BadExpression", "BadPattern", "BadYAML", "BadType", "BadName", "NoName",
			"DuplicateKey", "DuplicateName", "BadConversion"), known{"Plumbline reports its mistake", pageOfStarting}},
		{OnlyPaC, reasons("FileTooLarge", "TooLarge", "TooManyDocuments", "TooManyPipelines", "TooManySteps",
			"TooMuchWork", "TooMuchYAML", "PayloadTooLarge"), known{"it exceeds a limit", "docs/language.md#limits"}},
		{OnlyPaC, reasons("AboveCeiling"), known{
			"a limit for PipelineRuns forbids it", "docs/repository.md#limits-for-pipelineruns"}},
		{OnlyPaC, func(_ *Planned, of Pipeline) bool { return strings.Contains(of.Why, "target-namespace") }, known{
			"target-namespace names another Repository of the same URL", pageOfStarting}},
	}
}

// stopped reports whether a definition has a mistake with which Pipelines-as-Code starts nothing.
func stopped(p *Planned, _ Pipeline) bool {
	is := reasons("BadYAML", "BadType", "BadConversion", "BadAnnotation", "BadPattern", "BadReference", "MissingTask",
		"MissingPipeline", "NoName", "DuplicateName")
	return slices.ContainsFunc(p.Pipelines, func(other Pipeline) bool { return is(p, other) })
}

// reasons reports whether a pipeline was refused for one of the reasons.
func reasons(names ...string) func(*Planned, Pipeline) bool {
	return func(_ *Planned, p Pipeline) bool { return slices.Contains(names, p.Mistake) }
}
