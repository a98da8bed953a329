// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxChunkBytes is how many compressed bytes one EventPayload stores. etcd refuses requests over
// about 1.5 MiB. The base64 of 256 KiB leaves room for several chunks in one watch event or
// transaction.
const MaxChunkBytes = 256 << 10

// EventPayload is one part of an immutable blob: the raw body of a delivery, or a plan. Controllers
// never watch or list EventPayloads while they process events, and delete them when their event
// settles.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=eventpayloads,scope=Namespaced
// +kubebuilder:printcolumn:name="Event",type=string,JSONPath=`.metadata.labels.plumbline\.dev/event`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type EventPayload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// A part of the blob's gzip stream. The parts are concatenated in the order of their
	// index.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="data is immutable"
	// +kubebuilder:validation:MaxLength=349528
	// The schema says only that it is text: checking that 340 KiB are base64 takes the API server a
	// tenth of a second.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	Data []byte `json:"data"`
}

// EventPayloadList is a list of EventPayloads.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type EventPayloadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []EventPayload `json:"items"`
}
