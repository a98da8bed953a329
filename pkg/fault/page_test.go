// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The page of a proxy in front of the API server is no verdict of the API server or of a webhook,
// whatever its status code and its words are (K31, I-3).
func TestFromKubePages(t *testing.T) {
	const lying = `<html>admission webhook "x" denied the request: ValidatingAdmissionPolicy 'p' denied request: no; exceeded quota: q; ` +
		`User "you" cannot pass; Request entity too large: limit is 3145728</html>`
	page := func(code int) error {
		return apierrors.NewGenericServerResponse(code, "POST", metav1Resource(), "", lying, 0, true)
	}
	nobodys := Error{Class: Transient, Reason: "Unavailable", Unknown: true}
	want := map[int]Error{
		401: {Class: Transient, Reason: "Unauthorized"},
		403: {Class: Operator, Reason: "Forbidden"},
		404: {Class: Operator, Reason: "NotServed"}, // also the API server's own "404 page not found" (K19)
		405: {Class: Operator, Reason: "NotSupported"},
		406: {Class: Operator, Reason: "NotSupported"},
		408: {Class: Transient, Reason: "Timeout", Unknown: true},
		415: {Class: Operator, Reason: "NotSupported"},
		429: {Class: Transient, Reason: "Throttled"},
		504: {Class: Transient, Reason: "Timeout", Unknown: true},
	}
	var cases []kubeCase
	for code := 400; code < 600; code++ {
		expected, special := want[code]
		if !special {
			expected = nobodys
		}
		cases = append(cases, kubeCase{
			fmt.Sprintf("a page with the code %d concludes nothing", code), VerbCreate, page(code), expected,
		})
	}
	checkKube(t, cases)
}
