// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxTombstones is the most entries of one TombstonePage: at 200 bytes each it stays far below what
// etcd takes.
const MaxTombstones = 4096

// TombstonePage remembers settled GitEvents that were deleted while their deliveries may still be
// sent again, many to an object, so that a redelivery is recognised. The sweep alone writes it;
// receivers read it before they record a delivery.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=tombstonepages,scope=Namespaced,categories=plumbline
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type TombstonePage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Entries are lines that package tombstone reads and writes, one for each event.
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
