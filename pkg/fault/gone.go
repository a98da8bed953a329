// SPDX-License-Identifier: Apache-2.0

package fault

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// Gone reports whether the API server says that the requested object does not exist (K20). It is
// false for a 404 because the kind is not served at the moment (K19), and for one of a proxy.
// Otherwise a delivery could be lost, or a running PipelineRun be reported as deleted. It is false
// for nil.
func Gone(err error) bool {
	return apierrors.IsNotFound(err) && FromKube(VerbRead, err).Reason == ReasonNotFound
}
