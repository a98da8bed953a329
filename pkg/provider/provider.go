// SPDX-License-Identifier: Apache-2.0

// Package provider is the contract between Plumbline and a Git service: a decoder without a
// cluster, and an authenticated view of one repository behind three small interfaces. Each service
// is one sub-package that returns a Provider and passes providertest.
package provider

import (
	"context"
	"net/http"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// Origin is what can be said of a delivery before it is verified. It serves to find the Repository
// and its secret only.
type Origin struct {
	// URL is the repository's web URL as the payload claims; empty when the delivery names no
	// repository (ping).
	URL string
	// App is true when the delivery belongs to the App, whose one secret is known before the
	// Repository is.
	App bool
	// DeliveryKey is the service's id of the delivery, for logs: what people find it by at the
	// service.
	DeliveryKey string
	// Event is the service's name of the event ("push"), for logs and metrics.
	Event string
	// Push is true for what only writers cause: pushes of branches and tags.
	Push bool
}

// Webhook turns bytes into values; it knows no client and no cluster.
type Webhook interface {
	// Claims reports whether the delivery looks like this service's.
	Claims(h http.Header) bool
	// Peek reads what is needed to find the Repository. Undecodable bodies are an Invalid fault.
	Peek(h http.Header, body []byte) (Origin, error)
	// Verify checks the signature in constant time. Any mismatch is an Operator fault with reason
	// "Unauthenticated".
	Verify(h http.Header, body, secret []byte) error
	// Decode returns the event without Repository, Payload and ReceivedAt. Events that are never
	// acted on are an Ignored fault whose message says why; a body that misses a required field is
	// Invalid. The headers that the event keeps suffice to decode its body again, which is how the
	// plan learns what a comment says.
	Decode(h http.Header, body []byte) (*v1alpha1.GitEventSpec, error)
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
	// File returns one file; one that does not exist is an Invalid fault with reason
	// "FileNotFound".
	File(ctx context.Context, sha, path string) ([]byte, error)
	// Changed lists all changed files, all pages.
	Changed(ctx context.Context, event *v1alpha1.GitEventSpec) (git.Changes, error)
	// DefaultBranch returns the commit that the repository's default branch is at now. An empty
	// repository is Transient.
	DefaultBranch(ctx context.Context) (sha string, err error)
}

// Addresses reads what the service shows at a web address, with no more credentials than the
// event's.
type Addresses interface {
	// FileAt returns the file that a web address of the service shows, whichever of its
	// repositories it is in, if the event's credentials cover that one or everybody may read it. An
	// address of another host or in a form the service does not have, and a file that cannot be
	// found with these credentials, is an Ignored fault: the address can still be read as everybody
	// reads it. A file that is there and too large is Invalid.
	FileAt(ctx context.Context, address string) ([]byte, error)
}

// History answers what a commit or a comment belongs to.
type History interface {
	// Pulls lists the repository's pull requests that hold the commit, all pages. A missing commit
	// is Transient.
	Pulls(ctx context.Context, sha string) ([]git.Pull, error)
	// Complete returns the event with what its delivery did not say: for a comment its pull
	// request's head commit, refs, head repository and author as they are now. A comment on a
	// commit is returned with the commit that its ref is at now, an annotated tag's being the one
	// it points to; with the default branch's if it has no ref. A ref that there is not is an
	// Ignored fault. The ids of project and owner in it are those of what has the project's name,
	// and nobody but the service can have made them up: what a URL is bound to is compared with
	// them. A pull request that is not open any more is an Ignored fault.
	//
	// A service whose deliveries are signed returns any other event as it is, without a call. One
	// that signs nothing returns it with what the service itself says, and so for comments, which
	// then have their Body: author, head repository, refs and labels of a pull request; and the
	// head was the pull request's, or the pushed ref's. What contradicts the delivery is an Ignored
	// fault; what is not there (yet) is Transient, with reason NotConfirmed, until the caller gives
	// up.
	Complete(ctx context.Context, event *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error)
	// Versions returns the heads that the event's pull request has had, newest first, where the
	// service itself has to be asked for them because it signs no deliveries; the first is the
	// event's commit. Elsewhere deliveries tell them: none, without a call. The event is as
	// Complete returned it.
	Versions(ctx context.Context, event *v1alpha1.GitEventSpec) ([]git.Version, error)
	// Differ returns those of the named entries of the root directory, files or directories with
	// all they hold, that two commits do not have alike, by Git's own digests: nothing is cut,
	// whatever lies between the commits. A later commit that is missing is Transient. That it
	// cannot be told, because the earlier one is gone, one of them may not be read (403) or the
	// directory is too large to be listed, is an Invalid fault with reason NotComparable.
	Differ(ctx context.Context, earlier, later string, names ...string) ([]string, error)
	// Supersedes returns the commit that has taken the place of the event's, "" while none has, as
	// Git has it now: a pull request's other head, or the tip of a branch that no longer holds what
	// was pushed to it. Tags, what is deleted and what the service does not know are not
	// superseded: only what is certain keeps an event from running.
	Supersedes(ctx context.Context, event *v1alpha1.GitEventSpec) (sha string, err error)
}

// Tips answers what is newest.
type Tips interface {
	// Tip returns the commit that the event's pull request or branch is at now, "" if the service
	// has none: for a tag, a branch that was deleted, a pull request that is gone. Its replicas may
	// not have heard of a push yet.
	Tip(ctx context.Context, event *v1alpha1.GitEventSpec) (sha string, err error)
}

// Access answers who may start a run. An error means that it is not known: wait, never assume.
type Access interface {
	// CanWrite reports whether the user has write access or more to the repository. An unknown user
	// has none. The user is named as Decode names the author of a pull request.
	CanWrite(ctx context.Context, user string) (bool, error)
	// Member reports whether the user belongs to the repository without perhaps being able to
	// write: a collaborator or member of the organization at GitHub, a member of the project or of
	// a group above it at GitLab.
	Member(ctx context.Context, user string) (bool, error)
	// InTeam reports whether the user is an active member of a team: of the organization's at
	// GitHub, by its slug; of a group at GitLab, by its full path. A team that the service does not
	// show is an Invalid fault with reason TeamNotFound, which says what to do.
	InTeam(ctx context.Context, team, user string) (bool, error)
	// Actor returns who caused a pull request's event, told being who did by its delivery: told
	// itself, without a call, where the service signs deliveries. Elsewhere it is whom the service
	// itself names, "" if it names nobody. What it may only not show yet is Transient, with reason
	// NotConfirmed, for a bounded time after the event's receipt. The event is as Complete returned
	// it.
	Actor(ctx context.Context, event *v1alpha1.GitEventSpec, told string) (string, error)
	// RootFiles returns those of the named files that the root directory of the default branch has
	// now, all at one commit. That the first of them is not there costs a single call (at GitLab
	// one for each 100 entries of the directory), and nothing else is read then; a file that was
	// read before costs none. A link in the place of a file is an Invalid fault. An empty
	// repository is Transient.
	RootFiles(ctx context.Context, names ...string) (map[string][]byte, error)
}

// Reporter writes verdicts. It is called by the report step only.
type Reporter interface {
	// Put makes the service show the check and returns its id. With an empty id it looks for a
	// check of ours with the same name and external id on the commit first and creates one only if
	// there is none. A check that is already completed is never reopened. With a conclusion the
	// newest check of ours is the one that gets it, whatever the id, and open older ones are closed
	// as superseded (I-8). An id that comes with an error is to be kept: only a duplicate could not
	// be closed. No error is Invalid. A check that is OnlyOpen has a conclusion, which all open
	// checks of ours of its external id get; without any the id stays as it is.
	//
	// With sole the id is all there is: no check of ours was ever posted but that one, and if the
	// id is empty none. What was accepted of it has no conclusion unless the check has one, too.
	// Then nothing need be looked up. A write that is sent without a look asks Fence before.
	Put(ctx context.Context, head git.Head, id string, check status.Check, sole bool) (newID string, err error)
}

// Conversation is what people write on a pull request.
type Conversation interface {
	// PutReply makes the pull request's conversation show the text, Markdown that begins with the
	// mark, in a comment of ours: the oldest that begins with it and that we have written, whatever
	// else has the mark. It is edited if it says something else, and written if there is none. The
	// text is cut to what the service takes. Whoever may not write there is an Operator fault.
	//
	// It never writes a second one unless two calls overlap, or one begins while what an earlier
	// one has sent may still take effect.
	PutReply(ctx context.Context, number int64, mark, text string) error
}

// Token is a credential for the pods of a run. It is never logged.
type Token struct {
	Value string
	// User goes with it; empty where the service looks at the token alone.
	User string
	// ExpiresAt is when the service stops accepting it, by the service's clock; zero when the
	// service does not say.
	ExpiresAt time.Time
	// Own is true when the token was minted for whoever asked and nobody else has it: it is to be
	// revoked when it is not needed any more. False where the service has no such tokens, and it is
	// the configured one.
	Own bool
}

// Tokens mints credentials for the pods of runs.
type Tokens interface {
	// CloneToken returns a token for one run: it reaches this one repository, has these permissions
	// there, by the service's names, and none besides. Each call mints another one where the
	// service can. Permissions that the service does not grant are an Operator fault.
	CloneToken(ctx context.Context, permissions map[string]string) (Token, error)
	// RevokeToken ends a token whose Own is true. One that works no more is no error.
	RevokeToken(ctx context.Context, token string) error
}

// Client is an authenticated view of ONE repository.
type Client struct {
	Source
	History
	Tips
	Addresses
	Access
	Reporter
	Conversation
	Tokens
}

// Credentials are what Connect authenticates with. They are never logged.
type Credentials struct {
	// AppID and PrivateKey (PEM) authenticate a GitHub App, with InstallationID.
	AppID          int64
	PrivateKey     []byte
	InstallationID int64
	// User and Token authenticate everything else.
	User  string
	Token string
	// Shared is true for those of the global Repository, which are other tenants' as well: with
	// them nothing is read outside of the project.
	Shared bool
	// From says for people where they are kept: "secret plumbline/app".
	From string
	// Reach says which Git services may be called with them beside those on the public internet.
	Reach egress.Policy
	// Observe is told how each call went; nil tells nobody. It is called by many goroutines.
	Observe func(Answered)
}

// Provider is one Git service.
type Provider struct {
	// Name is GitEventSpec.provider.
	Name    string
	Webhook Webhook
	// BaseURL returns the service's web URL from what the Repository configures that names the
	// token: its git_provider.url and its own URL, each of which may be empty. It is nil for a
	// service whose deliveries come from an App, which the installation configures.
	BaseURL func(configured, repositoryURL string, project v1alpha1.Project) string
	// Connect returns a client for the project. baseURL is the service's web URL from configuration
	// ("https://github.com"); a project of another host is refused before a credential is used. It
	// makes no call.
	Connect func(ctx context.Context, baseURL string, project v1alpha1.Project, credentials Credentials) (Client, error)
	// Deliveries returns the log of the App's deliveries; baseURL is as for Connect. It makes no
	// call. It is nil for a service that has no Apps.
	Deliveries func(baseURL string, credentials Credentials) (DeliveryLog, error)
	// Hooks returns the webhooks of a project, of which URL, Owner and Name are needed; the rest is
	// as for Connect. It is nil for a service that calls an App.
	Hooks func(baseURL string, project v1alpha1.Project, credentials Credentials) (HookLog, error)
	// Metadata returns what a PipelineRun carries of an id that Put returned, in maps that the
	// caller may change. Values of labels are valid as such.
	Metadata func(id string) (labels, annotations map[string]string)
	// Reopens is true where a report that lands after a check's conclusion is shown in its place,
	// whichever of the check's reports it is. Elsewhere only a check's first report can land late,
	// as a second check.
	Reopens bool
}
