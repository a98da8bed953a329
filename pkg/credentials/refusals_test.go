// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

func TestRefusalExpires(t *testing.T) {
	t.Parallel()
	r, now := &refusals{}, time.Unix(0, 0)
	tried := attempt{secret: types.NamespacedName{Name: "app"}, content: "x", repository: types.NamespacedName{Name: "r"}}
	f := fault.Operatorf(fault.ReasonCredentialsRefused, "no")
	r.note(tried, f, now)
	rotated, elsewhere := tried, tried
	rotated.content, elsewhere.repository = "y", types.NamespacedName{Name: "other"}
	if r.of(tried, now.Add(RefusalLife-1)) != f || r.of(rotated, now) != nil || r.of(elsewhere, now) != nil {
		t.Error("stored for another login, or not at all")
	}
	if r.of(tried, now.Add(RefusalLife)) != nil {
		t.Error("it does not expire")
	}
}
