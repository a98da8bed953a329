// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/json"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The parts of GitLab's payloads that are read. Pointers distinguish absent from empty where that
// matters.

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

// moment is a time in a payload: RFC 3339, or in most versions "2013-12-03 17:23:34 UTC". Anything
// else is no time.
type moment string

func (m moment) time() *metav1.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05 -0700"} {
		at, err := time.Parse(layout, string(m))
		otherZone := strings.HasSuffix(layout, "MST") && !strings.HasSuffix(string(m), " UTC")
		if err == nil && !otherZone {
			stamp := metav1.NewTime(at.UTC().Truncate(time.Second))
			return &stamp
		}
	}
	return nil
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
	UpdatedAt       moment          `json:"updated_at"`
}

// payloadNote is a comment. Its merge request has no action, and has its labels itself.
type payloadNote struct {
	payloadCommon
	User       *payloadUser `json:"user"`
	Attributes *struct {
		ID           int64   `json:"id"`
		AuthorID     int64   `json:"author_id"`
		Note         *string `json:"note"`
		CommitID     string  `json:"commit_id"`
		NoteableType string  `json:"noteable_type"` //nolint:misspell // GitLab's word for what can be commented on
		Action       string  `json:"action"`
		System       bool    `json:"system"`
		CreatedAt    moment  `json:"created_at"`
	} `json:"object_attributes"`
	MergeRequest *struct {
		payloadAttributes
		Labels []payloadLabel `json:"labels"`
	} `json:"merge_request"`
}
