// SPDX-License-Identifier: Apache-2.0

// Package provider is the contract between Plumbline and a Git service. provider.go holds all of
// it: everything that a service implements, in the order in which an event needs it. values.go
// holds the values that it passes. Each service is one sub-package that returns a Provider and
// passes providertest. The other files are what the services share: the HTTP transport, the limits
// of calls, and the reading of definitions.
//
// Every error is or wraps a *fault.Error, whose class decides what happens: Invalid is the author's
// to fix, Operator the administrator's; Transient and Throttled are retried; Ignored ends the event
// without a run. A method that reads calls the service each time unless its comment says otherwise.
package provider

import (
	"context"
	"net/http"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// Provider is one Git service.
type Provider struct {
	// Name is GitEventSpec.provider.
	Name string
	// Webhook reads deliveries.
	Webhook Webhook
	// BaseURL returns the service's web URL from what the Repository that names the token
	// configures: its git_provider.url and its own URL, each of which may be empty. It is nil for a
	// service whose deliveries come from an App, which the installation configures. Then WithToken
	// may have one.
	BaseURL func(configured, repositoryURL string, project v1alpha1.Project) string
	// Connect returns a client for the project. baseURL is the service's web URL from configuration
	// ("https://github.com"); a project on another host is refused before a credential is used. It
	// makes no call.
	Connect func(ctx context.Context, baseURL string, project v1alpha1.Project, credentials Credentials) (Client, error)
	// Locate returns the project with what the service says about it, and the App's installation
	// that has it, 0 without an App. Of the project, URL, Owner and Name are needed; the rest is as
	// for Connect. A project that was renamed, or that the credentials do not reach, is an Operator
	// fault.
	Locate func(
		ctx context.Context, baseURL string, project v1alpha1.Project, credentials Credentials,
	) (located v1alpha1.Located, err error)
	// Metadata returns the labels and annotations of a PipelineRun for a check id that Put
	// returned. The caller may change both maps. The values of the labels are valid label values.
	Metadata func(id string) (labels, annotations map[string]string)
	// Reopens is true where a late report replaces a check's conclusion, whichever of the check's
	// reports it is. Elsewhere only a check's first report can arrive late, as a second check.
	Reopens bool
	// SignsBody is true if Verify reads the whole body, so that the time depends on its size.
	SignsBody bool
	// Annotates is true if the service shows annotations on source lines. Then Client has an
	// Annotator.
	Annotates bool
	// Comments is true if its checks have no room for the tasks and the log of a run. Then a
	// comment on the pull request shows them.
	Comments bool
	// Deliveries returns the log of the App's deliveries; baseURL is as for Connect. It makes no
	// call. It is nil for a service that has no Apps.
	Deliveries func(baseURL string, credentials Credentials) (DeliveryLog, error)
	// Hooks returns the webhooks of a project, of which URL, Owner and Name are needed; the rest is
	// as for Connect. It makes no call. It is nil for a service that calls an App.
	Hooks func(baseURL string, project v1alpha1.Project, credentials Credentials) (HookLog, error)
	// WithToken is the same service for Repositories that name a token and a webhook secret. It is
	// nil for a service that has no App.
	WithToken *Provider
}

// For returns the service that serves an event. known is false if this version does not serve it.
// A request to /incoming whose project is not located yet is the App's, as far as the event says.
func For(services map[string]Provider, event *v1alpha1.GitEventSpec) (service Provider, known bool) {
	service, known = services[event.Provider]
	located := event.Incoming == nil || event.Project.ID != 0
	if service.WithToken != nil && event.InstallationID == 0 && located {
		return *service.WithToken, known
	}
	return service, known
}

// Webhook turns a delivery into an event, in this order: Claims, Peek, Verify, Decode. It calls
// neither the service nor a cluster.
type Webhook interface {
	// Claims reports whether the delivery looks like this service's.
	Claims(h http.Header) bool
	// Peek reads what is needed to find the Repository. A body that cannot be decoded is Invalid.
	Peek(h http.Header, body []byte) (Origin, error)
	// Verify checks the signature in constant time. Any mismatch is an Operator fault with reason
	// Unauthenticated.
	Verify(h http.Header, body, secret []byte) error
	// Decode returns the event without Repository, Payload and ReceivedAt. An event that starts
	// nothing is an Ignored fault whose message says why; a body that misses a required field is
	// Invalid. The headers that the event keeps suffice to decode its body again: planning reads a
	// comment's text that way.
	Decode(h http.Header, body []byte) (*v1alpha1.GitEventSpec, error)
}

// Client is an authenticated view of one repository.
type Client struct {
	History
	Access
	Source
	Addresses
	Tips
	Tokens
	Reporter
	Conversation
	Annotator
}

// History reads what an event, a commit or a comment belongs to.
type History interface {
	// Complete returns the event with what its delivery did not say:
	//   - A comment on a pull request gets the head commit, refs, head repository and author that
	//     the pull request has now. A pull request that is no longer open is an Ignored fault.
	//   - A comment on a commit gets the commit that its ref is at now (for an annotated tag, the
	//     commit it points to), or the default branch's if it has no ref. A ref that does not exist
	//     is an Ignored fault.
	//   - A request to /incoming gets the commit that its branch is at now. A branch that does not
	//     exist is an Ignored fault.
	//
	// The ids of project and owner in it are those of the project that has the name now, as the
	// service itself says. The claim of the URL is checked against them.
	//
	// A service that signs its deliveries returns any other event unchanged, without a call. One
	// that does not sign returns what the service itself says: the author, head repository, refs
	// and labels of a pull request, and the Body of a comment. It also checks that the head was the
	// pull request's, or the pushed ref's. A delivery that contradicts the service is an Ignored
	// fault. What the service does not have (yet) is Transient, with reason NotConfirmed, until the
	// caller gives up.
	Complete(ctx context.Context, event *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error)
	// Versions returns the heads that the event's pull request has had, newest first; the first is
	// the event's commit. A service that signs its deliveries returns none, without a call: there
	// the deliveries say it. The event is as Complete returned it.
	Versions(ctx context.Context, event *v1alpha1.GitEventSpec) ([]git.Version, error)
	// Pulls lists the repository's pull requests that contain the commit, all pages. A missing
	// commit is Transient.
	Pulls(ctx context.Context, sha string) ([]git.Pull, error)
	// Differ returns which of the named entries of the root directory differ between two commits.
	// An entry is a file, or a directory with everything below it; Git's own digests are compared,
	// so the distance between the commits does not matter. A later commit that is missing is
	// Transient. An Invalid fault with reason NotComparable means that it cannot be known: the
	// earlier commit is gone, one of them may not be read (403), or the directory is too large to
	// be listed.
	Differ(ctx context.Context, earlier, later string, names ...string) ([]string, error)
	// Supersedes returns the commit that Git has now in place of the event's: the pull request's
	// other head, or the tip of a branch that no longer contains what was pushed. It returns "" for
	// none, and also for tags, deletions and what the service does not know: only a certain answer
	// keeps an event from running.
	Supersedes(ctx context.Context, event *v1alpha1.GitEventSpec) (sha string, err error)
}

// Access reads who may start a run. After an error the caller waits: it assumes neither yes nor no.
type Access interface {
	// Actor returns the user who caused a pull request's event; reported is the user in its
	// delivery. A service that signs its deliveries returns reported, without a call. Elsewhere it
	// is the user whom the service itself names, "" for none. What the service may not show yet is
	// Transient, with reason NotConfirmed, for a bounded time after the event's receipt. The event
	// is as Complete returned it.
	Actor(ctx context.Context, event *v1alpha1.GitEventSpec, reported string) (string, error)
	// CanWrite reports whether the user has write access or more to the repository. An unknown user
	// has none. The user is named as Decode names the author of a pull request.
	CanWrite(ctx context.Context, user string) (bool, error)
	// Member reports whether the user belongs to the repository, with or without write access: a
	// collaborator or a member of the organization at GitHub, a member of the project or of a group
	// above it at GitLab.
	Member(ctx context.Context, user string) (bool, error)
	// InTeam reports whether the user is an active member of a team: of the organization's at
	// GitHub, by its slug; of a group at GitLab, by its full path. A team that the service does not
	// show is an Invalid fault with reason TeamNotFound, which says what to do.
	InTeam(ctx context.Context, team, user string) (bool, error)
	// RootFiles returns those of the named files that the root directory of the default branch has
	// now, all at one commit. If the first is not there, nothing else is read: that costs one call
	// (at GitLab one for each 100 entries of the directory). An unchanged file is read once only. A
	// symbolic link in place of a file is an Invalid fault. An empty repository is Transient.
	RootFiles(ctx context.Context, names ...string) (map[string][]byte, error)
}

// Source reads one repository at a fixed revision.
type Source interface {
	// Head completes the revision. A missing commit is Transient (replication lag) until the caller
	// gives up.
	Head(ctx context.Context, event *v1alpha1.GitEventSpec) (git.Head, error)
	// Files returns the .yaml and .yml files below dir at sha, sorted by path, recursively. A
	// directory that does not exist in a readable repository is an empty result and no error; a
	// repository that cannot be read is Operator.
	Files(ctx context.Context, sha, dir string) ([]git.File, error)
	// File returns one file; one that does not exist is an Invalid fault with reason FileNotFound.
	File(ctx context.Context, sha, path string) ([]byte, error)
	// Changed lists all files that the event changes, all pages.
	Changed(ctx context.Context, event *v1alpha1.GitEventSpec) (git.Changes, error)
	// DefaultBranch returns the commit that the repository's default branch is at now. An empty
	// repository is Transient.
	DefaultBranch(ctx context.Context) (sha string, err error)
}

// Addresses reads other repositories of the service, with the event's credentials only.
type Addresses interface {
	// FileAt returns the file that a web address of the service shows, in any repository that the
	// event's credentials cover or that is public, or in one of the others, of which Covered has
	// returned each. These are an Ignored fault, because the address can still be fetched without
	// credentials: another host, a form that the service does not have, and a file that these
	// credentials cannot find. A file that is too large is Invalid.
	FileAt(ctx context.Context, address string, others ...v1alpha1.Project) ([]byte, error)
}

// Tips reads which commit is the newest.
type Tips interface {
	// Tip returns the commit that the event's pull request or branch is at now. It returns "" if
	// the service has none: for a tag, a deleted branch, a pull request that is gone. The service's
	// replicas may not have seen a push yet.
	Tip(ctx context.Context, event *v1alpha1.GitEventSpec) (sha string, err error)
}

// Tokens mints credentials for the pods of runs.
type Tokens interface {
	// Covered returns the repositories that the App's installation covers: owner, name and ids. The
	// list may be some minutes old. A service without Apps returns none.
	Covered(ctx context.Context) ([]v1alpha1.Project, error)
	// CloneToken returns a token for one run: it reaches this one repository and the others, of
	// which Covered has returned each, and has these permissions there, by the service's names, and
	// no others. Each call mints a new token where the service can. Permissions that the service
	// does not grant are an Operator fault. A service without Apps ignores others.
	CloneToken(ctx context.Context, permissions map[string]string, others ...v1alpha1.Project) (Token, error)
	// RevokeToken revokes a token whose Own is true. A token that no longer works is no error.
	RevokeToken(ctx context.Context, token string) error
}

// Reporter writes checks. Only the report step calls it.
type Reporter interface {
	// Put makes the service show the check and returns its id. With an empty id it first looks on
	// the commit for a check of ours with the same name and external id, and creates one only if
	// there is none. A completed check is never reopened. A conclusion goes to the newest check of
	// ours, whatever the id, and pending older ones are closed as superseded (I-8). A check that is
	// OnlyOpen has a conclusion, which every pending check of ours with its external id gets; if
	// there is none, none is created.
	//
	// With sole the caller knows all checks of ours: the one with this id, or none if the id is
	// empty. Its last accepted report has no conclusion, unless the check has one, too. Then Put
	// need not look anything up. A write without a look-up asks Fence first.
	//
	// No error is Invalid. The caller stores an id even if an error comes with it: then only a
	// duplicate could not be closed.
	Put(ctx context.Context, head git.Head, id string, check status.Check, sole bool) (newID string, err error)
}

// Annotator shows what logs say about source lines. It is nil for a service that cannot.
type Annotator interface {
	// Annotate adds to the check with this id those of the lines that it does not have. The lines
	// of a check must always be the same, in the same order: a check that has n annotations has the
	// first n. The rest of the check stays as it is. A check that does not exist is no error.
	//
	// No error is Invalid. After one that is Unknown, the caller waits until what was sent cannot
	// take effect any more.
	Annotate(ctx context.Context, id string, check status.Check, lines []v1alpha1.SourceLine) error
}

// Conversation writes comments on a pull request.
type Conversation interface {
	// PutReply makes the pull request show the text in one comment of ours: the oldest that begins
	// with the mark and that our account wrote. It edits the comment if its text differs, and
	// creates it if there is none, unless it is OnlyEdit. The text is cut to the service's limit.
	// An account that may not comment is an Operator fault.
	//
	// It never creates a second comment unless two calls overlap, or one starts while what an
	// earlier one sent may still take effect.
	PutReply(ctx context.Context, number int64, comment Comment) error
}
