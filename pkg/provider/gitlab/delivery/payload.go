// SPDX-License-Identifier: Apache-2.0

package delivery

import "encoding/json"

// The parts of GitLab's payloads that are read. Pointers tell absent from empty where that matters.

type payloadProject struct {
	ID            int64  `json:"id"`
	Path          string `json:"path_with_namespace"`
	WebURL        string `json:"web_url"`
	DefaultBranch string `json:"default_branch"`
}

type payloadUser struct {
	ID       int64  `json:"id"`
	Username string `json:"username"`
}

type payloadCommon struct {
	Kind    string          `json:"object_kind"`
	Project *payloadProject `json:"project"`
}

type payloadCommit struct {
	ID      string `json:"id"`
	Message string `json:"message"`
	URL     string `json:"url"`
}

type payloadPush struct {
	payloadCommon
	Ref         string `json:"ref"`
	Before      string `json:"before"`
	After       string `json:"after"`
	CheckoutSHA string `json:"checkout_sha"`
	Username    string `json:"user_username"`
	ProjectID   int64  `json:"project_id"`
}

type payloadLabel struct {
	ID    int64  `json:"id"`
	Title string `json:"title"`
}

type payloadMergeRequest struct {
	payloadCommon
	User       *payloadUser               `json:"user"`
	Attributes *payloadAttributes         `json:"object_attributes"`
	Labels     []payloadLabel             `json:"labels"`
	Changes    map[string]json.RawMessage `json:"changes"`
}

type payloadAttributes struct {
	IID             int64           `json:"iid"`
	Action          string          `json:"action"`
	State           string          `json:"state"`
	OldRev          string          `json:"oldrev"`
	Title           string          `json:"title"`
	AuthorID        int64           `json:"author_id"`
	Draft           bool            `json:"draft"`
	WorkInProgress  bool            `json:"work_in_progress"`
	SourceBranch    string          `json:"source_branch"`
	TargetBranch    string          `json:"target_branch"`
	SourceProjectID int64           `json:"source_project_id"`
	TargetProjectID int64           `json:"target_project_id"`
	Source          *payloadProject `json:"source"`
	LastCommit      *payloadCommit  `json:"last_commit"`
}

// payloadNote is a comment. Its merge request has no action, and its labels with it.
type payloadNote struct {
	payloadCommon
	User       *payloadUser `json:"user"`
	Attributes *struct {
		ID           int64   `json:"id"`
		AuthorID     int64   `json:"author_id"`
		Note         *string `json:"note"`
		NoteableType string  `json:"noteable_type"` //nolint:misspell // GitLab's word for what can be commented on
		Action       string  `json:"action"`
		System       bool    `json:"system"`
	} `json:"object_attributes"`
	MergeRequest *struct {
		payloadAttributes
		Labels []payloadLabel `json:"labels"`
	} `json:"merge_request"`
}
