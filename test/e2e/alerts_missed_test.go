// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// givenUp: a delivery that met nobody is one that GitLab does not send again any more.
func givenUp() condition {
	return when("a missed delivery is given up", setup{service: gitLab, receivers: 1, controllers: 1, gitlab: gitlab.Options{KeepFailingHooks: true}},
		map[string]movement{"PlumblineDeliveryGivenUp": anyRises}, func(w *world) {
			g := w.git.(*onGitLab)
			g.Inject(gitlab.Fault{Route: gitlab.RouteHookResend, Do: gitlab.NotFound404()})
			w.stores(map[string]string{"webhook.secret": hookSecret, "provider.token": g.CreateToken(gitlab.NewToken{Project: projectName, Level: gitlab.Maintainer}).Value})
			_, delivery := w.push(map[string]string{"README.md": "nothing to run"})
			if status, _, err := w.git.deliver(w.ctx, noURL, delivery); err == nil {
				w.t.Fatalf("%s answered %d", noURL, status)
			}
			w.configure("webhook-url", noURL)
		})
}

// anyRises: one of the sums is higher than before.
func anyRises(q query, before, after page) (err error) {
	for i := range q.Selectors {
		one := q
		one.Selectors = q.Selectors[i : i+1]
		if err = rises(one, before, after); err == nil {
			return nil
		}
	}
	return err
}
