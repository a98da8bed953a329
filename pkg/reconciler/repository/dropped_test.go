// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"strings"
	"testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

func TestSettingsThatPipelinesAsCodeDropsAreReported(t *testing.T) {
	with := func(settings *pacv1alpha1.Settings) *pacv1alpha1.Repository {
		r := repo("one", "app", appURL)
		r.Spec.Settings = settings
		return r
	}
	both := with(&pacv1alpha1.Settings{UntrustedServiceAccount: "weak", Trusted: []string{"bot"}})
	one, none := with(&pacv1alpha1.Settings{Trusted: []string{"bot"}}), with(&pacv1alpha1.Settings{})
	for name, c := range map[string]struct {
		before, after *pacv1alpha1.Repository
		pac           string
		want          int
	}{
		"all are gone":              {both, none, "http://pac:8080", 1},
		"with their parent":         {one, with(nil), "http://pac:8080", 1},
		"one is left":               {both, one, "http://pac:8080", 0},
		"there were none":           {none, with(nil), "http://pac:8080", 0},
		"without Pipelines-as-Code": {both, none, "", 0},
		"a new Repository":          {nil, none, "http://pac:8080", 0},
		"a deleted one":             {both, nil, "http://pac:8080", 0},
	} {
		w := newEnv(t)
		w.configure(map[string]string{"serve-namespaces": "one", "pipelines-as-code-url": c.pac})
		w.r.reportDropped(c.before, c.after)
		if got := w.published(); len(got) != c.want || c.want == 1 && !strings.Contains(got[0], "settings.trusted") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
