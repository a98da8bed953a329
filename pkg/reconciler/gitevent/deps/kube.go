// SPDX-License-Identifier: Apache-2.0

package deps

import corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

// Kube reaches Kubernetes' own objects.
type Kube struct {
	corev1client.CoreV1Interface
	// Logs reads pods, their logs and the Secrets that they name. It has connections of its own,
	// because logs may hang.
	Logs corev1client.CoreV1Interface
}
