// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/types"
)

// RepositoryReference names the Repository object that an event belongs to.
type RepositoryReference struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// URL is the Repository's spec.url when the event was received.
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
}

// Project is a repository at a Git service.
type Project struct {
	// Owner is the organization, user or group path ("acme", "group/sub").
	// +kubebuilder:validation:MaxLength=1024
	Owner string `json:"owner"`
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name"`
	// ID is the service's numeric id.
	ID int64 `json:"id"`
	// OwnerID is the service's numeric id of the organization, user or group. It is 0 if the
	// delivery does not contain it (GitLab's; the plan then reads it).
	// +optional
	OwnerID int64 `json:"ownerID,omitempty"`
	// URL is the web URL ("https://github.com/acme/app").
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
	// CloneURL is the URL for git clone over HTTP if it is not URL; empty for GitHub and GitLab.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	CloneURL string `json:"cloneURL,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	DefaultBranch string `json:"defaultBranch,omitempty"`
}

// PullRequest is the part of a pull or merge request that decisions need.
type PullRequest struct {
	Number int64 `json:"number"`
	// Title is cut to 1024 bytes on a UTF-8 boundary.
	// +optional
	Title string `json:"title,omitempty"`
	// Author is the login of the account that opened it.
	Author string `json:"author"`
	// App is true when the service says that the author is an App. An App's login does not always
	// show it.
	// +optional
	App bool `json:"app,omitempty"`
	// AuthorID is the service's numeric id of that account. It is 0 if the service signs its
	// deliveries, so that Author can be trusted.
	// +optional
	AuthorID int64 `json:"authorID,omitempty"`
	// HeadProjectID is the service's id of the repository that has the source branch; 0 when that
	// repository was deleted.
	HeadProjectID int64 `json:"headProjectID"`
	// +optional
	// +kubebuilder:validation:MaxItems=100
	Labels []string `json:"labels,omitempty"`
	// +optional
	Draft bool `json:"draft,omitempty"`
}

// Comment is a comment on a pull or merge request, or on a commit.
type Comment struct {
	// ID is the service's id of the comment.
	ID int64 `json:"id"`
	// Body is the whole text of the comment. Decode fills it in, and the plan reads it from the
	// payload again. It is not stored: settled events exist for days and must stay small.
	Body string `json:"-"`
}

// Rerun is a request to run checks again.
type Rerun struct {
	// All is true for all checks of the commit. Check and ExternalID are then empty.
	// +optional
	All bool `json:"all,omitempty"`
	// Check is the check's name as the Git service shows it.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Check string `json:"check,omitempty"`
	// ExternalID is Plumbline's id of the check: the name of its PipelineRun, or of its GitEvent.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	ExternalID string `json:"externalID,omitempty"`
	// AppID is the GitHub App that the check belongs to.
	AppID int64 `json:"appID"`
	// Pulls are the numbers of the pull requests that the delivery names for the commit. They are
	// pull requests from branches of this repository.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	Pulls []int64 `json:"pulls,omitempty"`
}

// MaxRerunPulls limits Rerun.Pulls. A commit is normally the head of very few pull requests.
const MaxRerunPulls = 10

// Commit describes a commit for people.
type Commit struct {
	// Title is the first line of the message, cut to 1024 bytes on a UTF-8 boundary.
	// +optional
	Title string `json:"title,omitempty"`
	// URL is the commit's web page.
	// +optional
	URL string `json:"url,omitempty"`
	// SkipCI is true when the full message asks for no CI ("[skip ci]").
	// +optional
	SkipCI bool `json:"skipCI,omitempty"`
}
