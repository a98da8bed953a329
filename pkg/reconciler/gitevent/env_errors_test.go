// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

var errRefused = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500,
	Reason:  metav1.StatusReasonInternalError,
	Message: `Internal error occurred: failed calling webhook "webhook.pipeline.tekton.dev": failed to call webhook: Post "https://tekton-pipelines-webhook.tekton-pipelines.svc:443/defaulting?timeout=10s": dial tcp 10.96.0.1:443: connect: connection refused`}}

var errDenied = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 403,
	Reason:  metav1.StatusReasonForbidden,
	Message: `admission webhook "policy.example" denied the request: no`}}

var (
	errConflict = apierrors.NewConflict(v1alpha1.Resource("gitevents"), "push-1",
		errors.New("the object has been modified"))
	errThrottled = apierrors.NewTooManyRequests("try again later", 1)
)
