// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/json"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The parts of GitHub's payloads that are read. Pointers tell absent from empty where that matters.

type payloadRepository struct {
	ID            int64       `json:"id"`
	Name          string      `json:"name"`
	Owner         payloadUser `json:"owner"`
	HTMLURL       string      `json:"html_url"`
	DefaultBranch string      `json:"default_branch"`
	PushedAt      moment      `json:"pushed_at"`
}

// moment is a time in a payload: RFC 3339, or Unix seconds in the repository of a push event. What
// is neither is no time.
type moment struct{ at time.Time }

// endOfTime is the last second that RFC 3339 can write, and with it an event: the year 9999.
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

// identity is that of a body that says when its event happened, without its key; nil where it does
// not.
func (m moment) identity() *v1alpha1.BodyIdentity {
	if m.at.IsZero() {
		return nil
	}
	return &v1alpha1.BodyIdentity{At: metav1.NewTime(m.at)}
}

// payloadUser is an account. The owner in a push event of old GitHub Enterprise Servers has a name
// only.
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
	Before      string `json:"before"` // of synchronize
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

// payloadComment is a comment on an issue; pull requests are issues that have a pull_request.
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

// payloadRemark is what somebody wrote; of a commit it has that commit.
type payloadRemark struct {
	ID        int64        `json:"id"`
	Body      string       `json:"body"`
	User      *payloadUser `json:"user"`
	CommitID  string       `json:"commit_id"`
	CreatedAt moment       `json:"created_at"`
}

// payloadEnd is one side of a pull request; repo is null when it was deleted.
type payloadEnd struct {
	Ref  string             `json:"ref"`
	SHA  string             `json:"sha"`
	Repo *payloadRepository `json:"repo"`
}
