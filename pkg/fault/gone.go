// SPDX-License-Identifier: Apache-2.0

package fault

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// Gone reports whether the API server says that the object that was asked for does not exist (K20).
// A 404 because its kind is not served at the moment (K19), or of a proxy, says nothing of the
// object: who believed it would throw a delivery away or call a running PipelineRun deleted. It is
// false for nil.
func Gone(err error) bool {
	return apierrors.IsNotFound(err) && FromKube(VerbRead, err).Reason == ReasonNotFound
}
