// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RepositoryClaim says which Repository owns a repository URL. Its name is derived from the
// canonical URL, so the first create wins. It is deleted 24 hours after its Repository.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=repositoryclaims,scope=Namespaced,categories=plumbline
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.url`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.repository.namespace`
// +kubebuilder:printcolumn:name="Repository",type=string,JSONPath=`.spec.repository.name`
// +kubebuilder:printcolumn:name="Released",type=date,JSONPath=`.status.releasedAt`
type RepositoryClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The URL and its owner.
	Spec RepositoryClaimSpec `json:"spec"`
	// Since when the owner is gone, and which repository the Git service has at the URL.
	// +optional
	Status RepositoryClaimStatus `json:"status,omitempty"`
}

// RepositoryClaimSpec is the URL and its owner.
type RepositoryClaimSpec struct {
	// The web URL in its canonical form.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a claim stays with its URL: delete it to free the URL"
	URL string `json:"url"`
	// The owner's namespace and name. A Repository that is created again under both
	// keeps the claim. Only the name may change: the claim moves to another Repository of the
	// namespace when its owner is gone or has another URL.
	Repository ClaimOwner `json:"repository"`
}

// ClaimOwner is the Repository that owns a URL.
type ClaimOwner struct {
	// The namespace of the Repository.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a claim stays in its namespace: delete it to free the URL"
	Namespace string `json:"namespace"`
	// The name of the Repository.
	Name string `json:"name"`
	// The UID of the Repository.
	UID types.UID `json:"uid"`
}

// RepositoryClaimStatus says since when the owner is gone, and which repository the Git service has
// at the URL.
type RepositoryClaimStatus struct {
	// When the owner was first found to be gone or to have another URL; unset while
	// it owns the URL.
	// +optional
	ReleasedAt *metav1.Time `json:"releasedAt,omitempty"`
	// The repository that the Git service had at the URL when the first event was planned,
	// or that a user confirmed later. It is unset until then.
	// +optional
	Bound *BoundProject `json:"bound,omitempty"`
	// The repository of the newest event that was neither bound nor confirmed; unset if
	// there is none.
	// +optional
	Refused *BoundProject `json:"refused,omitempty"`
	// True while the newest event had the proof of ownership that the setting url-owners
	// requires. Without that setting it has no meaning.
	// +optional
	Proven bool `json:"proven,omitempty"`
	// When another namespace first wanted the URL while no event had proven it. An
	// hour later the claim moves to that namespace. It is unset while the URL is proven or no proof
	// is required.
	// +optional
	UnprovenSince *metav1.Time `json:"unprovenSince,omitempty"`
}

// BoundProject is a repository at a Git service, as one Repository object serves it.
type BoundProject struct {
	ProjectIdentity `json:",inline"`
	// The UID of the Repository object. A new object of the same name is not bound
	// by it: its creator decides what it serves.
	RepositoryUID types.UID `json:"repositoryUID"`
}

// RepositoryClaimList is a list of RepositoryClaims.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type RepositoryClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []RepositoryClaim `json:"items"`
}
