// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxTombstones is how many entries one TombstonePage may have. With 200 bytes each, it stays far
// below etcd's limit.
const MaxTombstones = 4096

// TombstonePage lists GitEvents that settled and were deleted while the Git service may still
// redeliver them, so that a redelivery is recognized. One page has many. Only the sweep writes it;
// receivers read it before they record a delivery.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=tombstonepages,scope=Namespaced
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type TombstonePage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// One line for each event, with its name and until when a redelivery is recognized.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	// +kubebuilder:validation:items:MaxLength=200
	Entries []string `json:"entries,omitempty"`
}

// TombstonePageList is a list of TombstonePages.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type TombstonePageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []TombstonePage `json:"items"`
}
