// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/json"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The parts of GitHub's payloads that are read. Pointers distinguish absent from empty where that
// matters.

type payloadRepository struct {
	ID            int64       `json:"id"`
	Name          string      `json:"name"`
	Owner         payloadUser `json:"owner"`
	HTMLURL       string      `json:"html_url"`
	DefaultBranch string      `json:"default_branch"`
	PushedAt      moment      `json:"pushed_at"`
}

// moment is a time in a payload: RFC 3339, or Unix seconds in the repository of a push event.
// Anything else is the zero time.
type moment struct{ at time.Time }

// endOfTime is the last second that RFC 3339, and so an event, can contain: in the year 9999.
const endOfTime = 253402300799

// UnmarshalJSON never fails.
func (m *moment) UnmarshalJSON(data []byte) error {
	if seconds, err := strconv.ParseInt(string(data), 10, 64); err == nil && seconds > 0 && seconds <= endOfTime {
		m.at = time.Unix(seconds, 0).UTC()
		return nil
	}
	if err := json.Unmarshal(data, &m.at); err != nil {
		m.at = time.Time{}
	}
	return nil
}

// identity returns the BodyIdentity of a body with the time of its event, still without its key;
// nil if it has no time.
func (m moment) identity() *v1alpha1.BodyIdentity {
	if m.at.IsZero() {
		return nil
	}
	return &v1alpha1.BodyIdentity{At: metav1.NewTime(m.at)}
}

// payloadUser is an account. In push events of old GitHub Enterprise Servers the owner has only a
// name.
type payloadUser struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
	Name  string `json:"name"`
	Type  string `json:"type"`
}

func (u payloadUser) login() string {
	if u.Login != "" {
		return u.Login
	}
	return u.Name
}

type payloadCommon struct {
	Action       string             `json:"action"`
	Repository   *payloadRepository `json:"repository"`
	Sender       *payloadUser       `json:"sender"`
	Installation *struct {
		ID int64 `json:"id"`
	} `json:"installation"`
}

type payloadPush struct {
	payloadCommon
	Ref        string       `json:"ref"`
	Before     string       `json:"before"`
	After      string       `json:"after"`
	Deleted    bool         `json:"deleted"`
	Pusher     *payloadUser `json:"pusher"`
	HeadCommit *struct {
		ID      string `json:"id"`
		Message string `json:"message"`
		URL     string `json:"url"`
	} `json:"head_commit"`
}

type payloadPullRequest struct {
	payloadCommon
	Before      string `json:"before"` // set for synchronize
	PullRequest *struct {
		Number int64          `json:"number"`
		State  string         `json:"state"`
		Title  string         `json:"title"`
		Draft  bool           `json:"draft"`
		User   *payloadUser   `json:"user"`
		Labels []payloadLabel `json:"labels"`
		Head   *payloadEnd    `json:"head"`
		Base   *payloadEnd    `json:"base"`

		UpdatedAt moment `json:"updated_at"`
	} `json:"pull_request"`
}

type payloadLabel struct {
	Name string `json:"name"`
}

// payloadComment is a comment on an issue; a pull request is an issue with a pull_request.
type payloadComment struct {
	payloadCommon
	Issue *struct {
		Number      int64          `json:"number"`
		Title       string         `json:"title"`
		State       string         `json:"state"`
		User        *payloadUser   `json:"user"`
		Labels      []payloadLabel `json:"labels"`
		PullRequest *struct{}      `json:"pull_request"`
	} `json:"issue"`
	Comment *payloadRemark `json:"comment"`
}

// payloadCommitComment is a comment on a commit, or on a line of it.
type payloadCommitComment struct {
	payloadCommon
	Comment *payloadRemark `json:"comment"`
}

// payloadRemark is the comment itself; on a commit it has the commit's id.
type payloadRemark struct {
	ID        int64        `json:"id"`
	Body      string       `json:"body"`
	User      *payloadUser `json:"user"`
	CommitID  string       `json:"commit_id"`
	CreatedAt moment       `json:"created_at"`
}

// payloadEnd is the head or base of a pull request; repo is null when the repository was deleted.
type payloadEnd struct {
	Ref  string             `json:"ref"`
	SHA  string             `json:"sha"`
	Repo *payloadRepository `json:"repo"`
}
