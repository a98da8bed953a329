// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// givenUpDelivery is a delivery that failed and that GitLab does not send again.
func givenUpDelivery() condition {
	return when("a missed delivery is given up",
		setup{service: gitLab, receivers: 1, controllers: 1, gitlab: gitlab.Options{KeepFailingHooks: true}},
		map[string]movement{"PlumblineDeliveryGivenUp": anySumRises}, func(env *environment) {
			g := env.git.(*onGitLab)
			g.Inject(gitlab.Fault{Route: gitlab.RouteHookResend, Do: gitlab.NotFound404()})
			env.updateGitLabSecret(map[string]string{"webhook.secret": hookSecret,
				"provider.token": g.CreateToken(gitlab.NewToken{Project: projectName, Level: gitlab.Maintainer}).Value})
			_, delivery := env.push(map[string]string{"README.md": "nothing to run"})
			if status, _, err := env.git.deliver(env.ctx, noURL, delivery); err == nil {
				env.t.Fatalf("%s answered %d", noURL, status)
			}
			env.setConfig("webhook-url", noURL)
		})
}

// anySumRises requires that one of the sums is higher than before.
func anySumRises(q query, before, after page) (err error) {
	for i := range q.Selectors {
		one := q
		one.Selectors = q.Selectors[i : i+1]
		if err = rises(one, before, after); err == nil {
			return nil
		}
	}
	return err
}
