// SPDX-License-Identifier: Apache-2.0

package steplogs

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// hiddenError is the error of a log that must not be shown.
type hiddenError struct {
	missing v1alpha1.MissingLog
	again   bool
}

func (h *hiddenError) Error() string { return string(h.missing.Reason) + ": " + h.missing.Object }

// missing returns a log that says why it is not there.
func missing(namespace string, err error) (log v1alpha1.RunLog, again bool) {
	if hidden := (*hiddenError)(nil); errors.As(err, &hidden) {
		log.Missing = &hidden.missing
		return log, hidden.again
	}
	reason, again := reasonOf(err)
	log.Missing = &v1alpha1.MissingLog{Reason: reason}
	if reason == v1alpha1.LogForbidden {
		log.Missing.Object = namespace
	}
	return log, again
}

// reasonOf returns what an error means. Only the cluster's own answers are final.
func reasonOf(err error) (reason v1alpha1.MissingReason, again bool) {
	switch {
	case apierrors.IsForbidden(err):
		return v1alpha1.LogForbidden, false
	case apierrors.IsNotFound(err), apierrors.IsBadRequest(err): // the latter is a container that the kubelet has not
		return v1alpha1.LogGone, false
	}
	return v1alpha1.LogUnavailable, !errors.Is(err, errTooLong)
}
