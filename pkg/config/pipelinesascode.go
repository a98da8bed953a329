// SPDX-License-Identifier: Apache-2.0

package config

// PipelinesAsCode is a Pipelines-as-Code that runs in the same cluster on purpose: it serves the
// namespaces that this installation does not serve. The zero value is none.
type PipelinesAsCode struct {
	// URL is where its controller listens: scheme and host, without a path.
	URL string
	// Broken reports that the URL cannot be read and that no earlier one is known.
	Broken bool
}

// Runs reports whether Pipelines-as-Code runs next to this installation.
func (p PipelinesAsCode) Runs() bool { return p.URL != "" || p.Broken }

// pipelinesAsCode reads the key. A process that starts with an invalid value must not act as if
// Pipelines-as-Code did not run: it would lose deliveries, and its PipelineRuns would be adopted.
func (p *parser) pipelinesAsCode(previous *Config) PipelinesAsCode {
	errs := len(p.errs)
	url := p.origin(keyPipelinesAsCode, "", previous.PipelinesAsCode.URL,
		"http://pipelines-as-code-controller.pipelines-as-code.svc:8080")
	known := previous.Namespaces.own != "" && !previous.PipelinesAsCode.Broken
	return PipelinesAsCode{URL: url, Broken: len(p.errs) > errs && !known}
}
