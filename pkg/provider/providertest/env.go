// SPDX-License-Identifier: Apache-2.0

// Package providertest is the conformance suite that every provider passes. It checks the contract
// of pkg/provider against a fake service that can be made to fail. A provider's own tests open an
// Env on a fake of its service and call Run.
package providertest

import (
	"cmp"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// Operation is something that the suite does at a service, independent of the service.
type Operation string

// The operations that can be made to fail.
const (
	CreateCheck    Operation = "create a check"
	UpdateCheck    Operation = "update a check"
	FindChecks     Operation = "list the checks of a commit"
	ReadDirectory  Operation = "read a directory"
	ReadFile       Operation = "read a file"
	AskPermission  Operation = "ask for a user's permission"
	AskMember      Operation = "ask whether a user is a member"
	AskTeam        Operation = "ask whether a user is in a team"
	ReadRepository Operation = "read the repository"
	ReadPull       Operation = "read a pull request"
	MintToken      Operation = "mint a token"
	ListComments   Operation = "list the comments"
	WriteComment   Operation = "write a comment"
	EditComment    Operation = "edit a comment"
)

// Failure is how an operation fails.
type Failure string

// The failures, with the rows of docs/errors.md that they belong to.
const (
	Unavailable     Failure = "502"                              // G12, L7
	StoredThen502   Failure = "stored, then 502"                 // G12, E8
	StoredThenGone  Failure = "stored, then no answer"           // G12, E8
	Disconnected    Failure = "no answer"                        // X1
	Unauthorized    Failure = "401"                              // G5, L2
	Forbidden       Failure = "403"                              // G6, L3
	NotFound        Failure = "404"                              // G7, G8, L4
	RateLimited     Failure = "rate limit of ten minutes"        // G1, L1
	SlowDown        Failure = "secondary rate limit"             // G2, without a time
	UnknownRevision Failure = "the refusal of an unknown commit" // G10
	Rejected        Failure = "the refusal of what we sent"      // G10
	Busy            Failure = "409"                              // G9, L5
	Garbage         Failure = "200 with a page that lies"        // a proxy's login page
)

// Check is a check as the service stores it.
type Check struct {
	ID, Name, ExternalID, State, Conclusion, Title, Summary, Text, DetailsURL string
	// Updates is how often it was changed after its creation.
	Updates int
}

// Git changes the repository of a fake service.
type Git interface {
	// Commit pushes files to a branch and returns the commit's id.
	Commit(branch string, files map[string]string) string
	// ForcePush moves a branch to a new commit with files on top of parent, or to parent itself
	// without files. It returns the branch's new commit.
	ForcePush(branch, parent string, files map[string]string) string
	// PullRequest opens a pull request from a branch to the default branch and returns its event.
	PullRequest(branch, author string) *v1alpha1.GitEventSpec
	// Comment writes a comment on the event's pull request and returns its event.
	Comment(on *v1alpha1.GitEventSpec, user, body string) *v1alpha1.GitEventSpec
	// Withdraw closes the event's pull request without merging it.
	Withdraw(on *v1alpha1.GitEventSpec)
}

// Service is a fake service with one repository.
type Service interface {
	Git
	People
	Conversation
	Traffic
	// Checks lists the checks of a commit, oldest first.
	Checks(sha string) []Check
}

// People changes the permissions of users.
type People interface {
	// Grant creates a user with a role: "none", "read", "write" or "admin".
	Grant(user, role string)
	// Join creates a team next to the repository, if necessary, and adds the user, if there is one.
	// It returns the team's name in settings.policy.
	Join(team, user string) string
}

// Conversation has the comments on the event's pull request.
type Conversation interface {
	// Comments lists the comments, oldest first; DeleteComments deletes ours as another user.
	Comments(on *v1alpha1.GitEventSpec) []Comment
	DeleteComments(on *v1alpha1.GitEventSpec)
	// Imitate writes a comment as another user.
	Imitate(on *v1alpha1.GitEventSpec, user, body string)
	// Lock locks the conversation, so that the Env's credentials may not comment.
	Lock(on *v1alpha1.GitEventSpec)
}

// Traffic controls and counts the calls.
type Traffic interface {
	// Fail makes the next count calls of an operation fail; 0 is all.
	Fail(op Operation, how Failure, count int)
	// Calls returns the number of calls so far.
	Calls() int
}

// Env is a provider and the service that it calls.
type Env struct {
	Provider    provider.Provider
	BaseURL     string
	Project     v1alpha1.Project
	Credentials provider.Credentials
	Service     Service
	// FileURL returns the web address of a file of the project at a branch.
	FileURL func(branch, path string) string
	// MaxTitle and MaxText are the service's limits for a check's title, and for its summary and
	// text, in the units of Length. MaxText is 0 for a service that stores neither summary nor
	// text.
	MaxTitle, MaxText int
	Length            func(string) int
	// Shows has the conclusions that the service has another word for.
	Shows map[status.Conclusion]string
	// Mints is true if tokens are minted for each repository, false if one is configured.
	Mints bool
	// SignsBody is true if the signature covers the body, false if a delivery only contains the
	// secret.
	SignsBody bool
	// Deliveries are signed with Secret and start something: at least a push and a pull request.
	Deliveries []Delivery
	Secret     []byte
	// Rows are the service's answers for each row of docs/errors.md about it.
	Rows []Row
	// Page compares the faults of the rows with the documentation.
	Page func(t *testing.T, met []Met)
	// Recorded are deliveries as the service documents or sent them, with all their fields, and
	// their meaning.
	Recorded []Recorded
}

// Run runs the suite. open returns a new Env each time.
func Run(t *testing.T, open func(*testing.T) Env) {
	t.Run("webhook", func(t *testing.T) { testWebhook(t, open) })
	t.Run("connect", func(t *testing.T) { testConnect(t, open) })
	t.Run("source", func(t *testing.T) { testSource(t, open) })
	t.Run("memory", func(t *testing.T) { testMemory(t, open) })
	t.Run("access", func(t *testing.T) { testAccess(t, open) })
	t.Run("member", func(t *testing.T) { testMember(t, open) })
	t.Run("team", func(t *testing.T) { testTeam(t, open) })
	t.Run("files of the default branch", func(t *testing.T) { testRootFiles(t, open) })
	t.Run("reporter", func(t *testing.T) { testReporter(t, open) })
	t.Run("reply", func(t *testing.T) { testReply(t, open) })
	t.Run("texts", func(t *testing.T) { testTexts(t, open) })
	t.Run("faults", func(t *testing.T) { testFaults(t, open) })
	t.Run("rows", func(t *testing.T) { testRows(t, open) })
}

// shows returns the service's word for a conclusion.
func (w Env) shows(c status.Conclusion) string { return cmp.Or(w.Shows[c], string(c)) }

func connect(t *testing.T, w Env) provider.Client {
	t.Helper()
	client, err := w.Provider.Connect(t.Context(), w.BaseURL, w.Project, w.Credentials)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	return client
}
