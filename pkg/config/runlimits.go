// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strconv"
	"strings"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config/podsecurity"
)

// runLimits reads what authors' PipelineRuns may ask for. A bad key keeps its previous value: it
// must not allow more.
func (p *parser) runLimits(previous podsecurity.Limits) podsecurity.Limits {
	return podsecurity.Limits{
		ServiceAccounts: p.accounts(previous.ServiceAccounts),
		PodSecurity:     p.podSecurity(previous.PodSecurity),
	}
}

func (p *parser) accounts(previous []string) []string {
	v, ok := p.value(keyRunAccounts)
	if !ok {
		return nil
	}
	var all []string
	for _, name := range strings.Split(v, ",") {
		name = strings.TrimSpace(name)
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			p.bad(keyRunAccounts, strconv.Quote(name)+" is not the name of a ServiceAccount", `a list like "builder, tester"`)
			return previous
		}
		all = append(all, name)
	}
	return all
}

func (p *parser) podSecurity(previous string) string {
	v, ok := p.value(keyRunPodSecurity)
	if ok && v != podsecurity.Baseline && v != podsecurity.Restricted {
		p.bad(keyRunPodSecurity, strconv.Quote(v)+" is not a level", `"baseline" or "restricted"`)
		return previous
	}
	return v
}

// CheckRun returns an Invalid fault for a PipelineRun that asks for more than the installation or
// its Repository allows. Everything that the run refers to has to be inlined. The message names the
// file, the field and the setting. pace is called with the CPU time of each check before it.
func (c *Config) CheckRun(
	run *pipelinev1.PipelineRun, file string, repository *pacv1alpha1.Repository, pace func(time.Duration) error,
) error {
	installation := c.RunLimits
	installation.Setting = "the installation's ConfigMap (" + keyRunAccounts + ", " + keyRunPodSecurity + ")"
	limits := []podsecurity.Limits{installation}
	if settings := repository.Spec.Settings; settings != nil && settings.RunCeiling != nil {
		limits = append(limits, podsecurity.Limits{
			ServiceAccounts: settings.RunCeiling.ServiceAccounts, PodSecurity: settings.RunCeiling.PodSecurity,
			Setting: "the Repository's settings.run_ceiling",
		})
	}
	return podsecurity.Check(run, file, pace, limits...)
}
