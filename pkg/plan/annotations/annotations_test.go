// SPDX-License-Identifier: Apache-2.0

package annotations_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/plan/annotations"
)

// The annotation counts, else the installation's setting. An invalid annotation keeps all runs,
// cancels none, and is reported.
func TestRead(t *testing.T) {
	t.Parallel()
	const cancel, keep = pipelinesascode.CancelInProgress, pipelinesascode.MaxKeepRuns
	installation := &config.Config{}
	installation.CancelInProgress.PullRequests = true
	for name, c := range map[string]struct {
		annotations map[string]string
		pull        bool
		cancels     bool
		keeps       int64 // -2 if nothing is said
		reasons     string
	}{
		"nothing, of a pull request":      {nil, true, true, -2, ""},
		"nothing, of a push":              {nil, false, false, -2, ""},
		"both":                            {map[string]string{cancel: " true ", keep: " 3 "}, false, true, 3, ""},
		"not to cancel, and to keep none": {map[string]string{cancel: "false", keep: "0"}, true, false, 0, ""},
		"neither can be read": {
			map[string]string{cancel: "yes", keep: "many"}, true, false, config.RetainAll, "MaxKeepRuns CancelInProgress",
		},
		"more than are counted": {
			map[string]string{keep: strconv.Itoa(config.MaxRetained + 1)}, false, false, config.MaxRetained + 1, "MaxKeepRuns",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := annotations.Read(c.annotations,
				annotations.Options{Config: installation, PullRequest: c.pull, Quote: strings.ToUpper})
			var reasons []string
			says := ""
			for _, problem := range got.Problems() {
				reasons, says = append(reasons, problem.Reason), says+problem.Says
			}
			for _, word := range []string{"yes", "many"} { // each value as its author wrote it
				if strings.Contains(says, word) || slices.Contains(slices.Collect(maps.Values(c.annotations)), word) &&
					!strings.Contains(says, `"`+strings.ToUpper(word)+`"`) {
					t.Errorf("says %q of %s", says, word)
				}
			}
			keeps := int64(-2)
			if got.Keep != nil {
				keeps = got.Keep.Most
			}
			if got.Cancel.On != c.cancels || keeps != c.keeps || strings.Join(reasons, " ") != c.reasons {
				t.Errorf("cancels: %t, keeps %d, problems %q", got.Cancel.On, keeps, reasons)
			}
		})
	}
}
