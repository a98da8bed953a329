// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// If there are too many pull requests, the first ones count.
func TestDecodeRerunLimitsPulls(t *testing.T) {
	links := []payloadPullLink{}
	for n := range v1alpha1.MaxRerunPulls + 5 {
		link := payloadPullLink{Number: int64(n + 1)}
		links = append(links, link, link)
	}
	p := payloadRerun{payloadCommon: payloadCommon{Repository: &payloadRepository{}}}
	spec := &v1alpha1.GitEventSpec{Rerun: &v1alpha1.Rerun{}}
	if err := p.locate(spec, strings.Repeat("a", 40), &payloadSuite{}, links); err != nil ||
		len(spec.Rerun.Pulls) != v1alpha1.MaxRerunPulls || spec.Rerun.Pulls[1] != 2 {
		t.Errorf("%v, %v", spec.Rerun.Pulls, err)
	}
}
