// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RepositoryClaim says which Repository owns a repository URL. Its name is derived from the
// canonical URL, so the first create wins; it outlives its Repository by 24 hours.
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

	Spec RepositoryClaimSpec `json:"spec"`
	// +optional
	Status RepositoryClaimStatus `json:"status,omitempty"`
}

// RepositoryClaimSpec is the URL and its owner.
type RepositoryClaimSpec struct {
	// URL is the canonical URL.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a claim stays with its URL: delete it to free the URL"
	URL string `json:"url"`
	// Repository is the owner: its namespace and name; a Repository re-created under both keeps the
	// claim. Only the name may change: the claim moves to another Repository of the namespace when
	// its owner is gone or names another URL.
	Repository ClaimOwner `json:"repository"`
}

// ClaimOwner is the Repository that owns a URL.
type ClaimOwner struct {
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a claim stays in its namespace: delete it to free the URL"
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

// RepositoryClaimStatus tells since when the owner is gone, and what the Git service has at the
// URL.
type RepositoryClaimStatus struct {
	// ReleasedAt is when the owner was first seen to be gone or to name another URL; unset while it
	// owns the URL.
	// +optional
	ReleasedAt *metav1.Time `json:"releasedAt,omitempty"`
	// Bound is what the Git service had at the URL when the first event was planned, or what was
	// confirmed since. It is unset until then.
	// +optional
	Bound *BoundProject `json:"bound,omitempty"`
	// Refused is what the newest event was of that was not bound and not confirmed; unset while
	// there is no such.
	// +optional
	Refused *BoundProject `json:"refused,omitempty"`
	// Proven is true while the newest event had the proof of ownership that the setting url-owners
	// asks for. It says nothing without that setting.
	// +optional
	Proven bool `json:"proven,omitempty"`
	// UnprovenSince is since when another namespace wants the URL that no event has proven: it is
	// handed over an hour later. It is unset while the URL is proven or no proof is asked for.
	// +optional
	UnprovenSince *metav1.Time `json:"unprovenSince,omitempty"`
}

// BoundProject is a repository at a Git service as one Repository object serves it.
type BoundProject struct {
	ProjectIdentity `json:",inline"`
	// RepositoryUID is that of the Repository object. Another one of the same name is not bound by
	// it: whoever makes a Repository decides what it serves.
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
