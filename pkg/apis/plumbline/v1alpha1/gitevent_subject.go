// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/types"
)

// RepositoryReference names the Repository object that an event belongs to.
type RepositoryReference struct {
	// The namespace of the Repository.
	Namespace string `json:"namespace"`
	// The name of the Repository.
	Name string `json:"name"`
	// The UID of the Repository.
	UID types.UID `json:"uid"`
	// The Repository's spec.url when the event was received.
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
}

// Project is a repository at a Git service.
type Project struct {
	// The organization, user or group path ("acme", "group/sub").
	// +kubebuilder:validation:MaxLength=1024
	Owner string `json:"owner"`
	// The name of the repository at the Git service ("app").
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name"`
	// The service's numeric id of the repository.
	ID int64 `json:"id"`
	// The service's numeric id of the organization, user or group. It is 0 if the
	// delivery does not contain it (GitLab's; the plan then reads it).
	// +optional
	OwnerID int64 `json:"ownerID,omitempty"`
	// The web URL ("https://github.com/acme/app").
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
	// The URL for git clone over HTTP if it is not url; empty for GitHub and GitLab.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	CloneURL string `json:"cloneURL,omitempty"`
	// The default branch.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	DefaultBranch string `json:"defaultBranch,omitempty"`
}

// PullRequest is the part of a pull or merge request that decisions need.
type PullRequest struct {
	// The number of the pull request, of GitLab's merge request within its project.
	Number int64 `json:"number"`
	// The title, cut to 1024 bytes on a UTF-8 boundary.
	// +optional
	Title string `json:"title,omitempty"`
	// The login of the account that opened it.
	Author string `json:"author"`
	// True when the service says that the author is an App. An App's login does not always
	// show it.
	// +optional
	App bool `json:"app,omitempty"`
	// The service's numeric id of that account. It is 0 if the service signs its
	// deliveries, so that author can be trusted.
	// +optional
	AuthorID int64 `json:"authorID,omitempty"`
	// The service's id of the repository that has the source branch; 0 when that
	// repository was deleted.
	HeadProjectID int64 `json:"headProjectID"`
	// The labels that it has.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	Labels []string `json:"labels,omitempty"`
	// True while it is a draft.
	// +optional
	Draft bool `json:"draft,omitempty"`
}

// Comment is a comment on a pull or merge request, or on a commit.
type Comment struct {
	// The service's id of the comment.
	ID int64 `json:"id"`
	// Body is the whole text of the comment. Decode fills it in, and the plan reads it from the
	// payload again. It is not stored: settled events exist for days and must stay small.
	Body string `json:"-"`
}

// Rerun is a request to run checks again.
type Rerun struct {
	// True for all checks of the commit. check and externalID are then empty.
	// +optional
	All bool `json:"all,omitempty"`
	// The check's name as the Git service shows it.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Check string `json:"check,omitempty"`
	// Plumbline's id of the check: the name of its PipelineRun, or of its GitEvent.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	ExternalID string `json:"externalID,omitempty"`
	// The GitHub App that the check belongs to.
	AppID int64 `json:"appID"`
	// The numbers of the pull requests that the delivery names for the commit. They are
	// pull requests from branches of this repository.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	Pulls []int64 `json:"pulls,omitempty"`
}

// Incoming is a request to POST /incoming, which starts one pipeline by its name.
type Incoming struct {
	// The pipeline's metadata.name or metadata.generateName. The dash at the end of a
	// generateName may be left out.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Pipeline string `json:"pipeline"`
	// The template variables that the request sets, and their values.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Params map[string]string `json:"params,omitempty"`
}

// EventIncoming is the EventType of a request to POST /incoming, and the value of on-event for it.
const EventIncoming = "incoming"

// MaxIncomingParams limits Incoming.Params.
const MaxIncomingParams = 64

// Located is a project that an event names only by its URL.
type Located struct {
	// The project, as the Git service describes it.
	Project Project `json:"project"`
	// The GitHub App installation that has the project, 0 elsewhere.
	// +optional
	InstallationID int64 `json:"installationID,omitempty"`
}

// Locate completes the event with its project.
func (s *GitEventSpec) Locate(at *Located) {
	s.Project, s.InstallationID, s.HeadURL = at.Project, at.InstallationID, at.Project.URL
}

// MaxRerunPulls limits Rerun.Pulls. A commit is normally the head of very few pull requests.
const MaxRerunPulls = 10

// Commit describes a commit for people.
type Commit struct {
	// The first line of the message, cut to 1024 bytes on a UTF-8 boundary.
	// +optional
	Title string `json:"title,omitempty"`
	// The commit's web page.
	// +optional
	URL string `json:"url,omitempty"`
	// True when the full message asks for no CI ("[skip ci]").
	// +optional
	SkipCI bool `json:"skipCI,omitempty"`
}
