// SPDX-License-Identifier: Apache-2.0

package fault

import "k8s.io/apimachinery/pkg/runtime/schema"

func metav1Resource() schema.GroupResource {
	return schema.GroupResource{Group: "tekton.dev", Resource: "pipelineruns"}
}
