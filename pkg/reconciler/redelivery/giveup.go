// SPDX-License-Identifier: Apache-2.0

package redelivery

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// ReasonGivenUp is the reason of the Kubernetes Event on the Repository.
const ReasonGivenUp = "DeliveryGivenUp"

// ReportGivenUp tells the owner of a Repository that a delivery is not requested any more. Remedy
// says where its responses are and how to send it again.
func ReportGivenUp(recorder record.EventRecorder, to *pacv1alpha1.Repository, d Delivery, why, remedy string) {
	first := ""
	if !d.First.IsZero() {
		first = " (first attempt: " + d.First.UTC().Format(time.RFC3339) + ")"
	}
	recorder.Eventf(to, corev1.EventTypeWarning, ReasonGivenUp,
		"Delivery %s was not recorded and is not requested any more: %s%s. %s", d.GUID, why, first, remedy)
}
