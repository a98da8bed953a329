// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"io"
	"net/http"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	ghprovider "github.com/plumbline-ci/plumbline/pkg/provider/github"
	glprovider "github.com/plumbline-ci/plumbline/pkg/provider/gitlab"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

// kind is one of the Git services that scenarios run against; "" is githubApp.
type kind string

const (
	githubApp kind = "github"
	gitLab    kind = "gitlab"
)

// service is a Git service with the environment's repository, in terms that no service owns:
// onGitHub and onGitLab implement it.
type service interface {
	hosting
	branches
	people
	webhooks
	memory
}

// hosting is where the service is, and how Plumbline gets there.
type hosting interface {
	kind() kind
	// url is where the service listens, without a slash at its end.
	url() string
	// page is the web address of the repository, and of a file of it.
	page(file ...string) string
	// connect creates what the Repository in the environment's namespace names, and returns the
	// Repository's spec.
	connect(env *environment) pacv1alpha1.RepositorySpec
	// secret is the Secret with what deliveries are signed with, and its key.
	secret(env *environment) (namespace, name, key string)
}

// branches is the repository's Git. A ref is a branch, or refs/tags/ and a tag.
type branches interface {
	// commit pushes to a branch, which it creates if need be.
	commit(branch string, change forge.Change) string
	// point moves or creates a ref.
	point(ref, sha string)
	remove(ref string)
	tip(branch string) string
	// create makes another, private repository, and returns the page of a file of it.
	create(name string, files map[string]string, file string) string
}

// people sets what users may do, and opens pull requests.
type people interface {
	// grant gives a user a role: read, write or admin.
	grant(user, role string)
	// join makes a user a member of a team next to the repository, which it creates; it returns
	// what settings.policy calls the team.
	join(team, user string) string
	// fork makes a user's own fork with a commit on the branch feature, and returns that.
	fork(user string) string
	// commitFork pushes to the branch feature of a user's fork.
	commitFork(user string, change forge.Change) string
	// open opens a pull request to the default branch from a branch of the repository, or of a
	// user's fork.
	open(fork, branch, author string) int
}

// webhooks makes and sends the service's deliveries.
type webhooks interface {
	// pushed is the event of the last change of refs/heads/... or refs/tags/...
	pushed(ref string) delivery
	// pulled is an event of a pull request: opened, synchronize, reopened, closed or edited.
	pulled(number int, action string) delivery
	// signed is the delivery with another body, signed with the secret.
	signed(d delivery, body []byte, secret string) delivery
	// deliver sends a delivery, and again the same one by its key.
	deliver(ctx context.Context, url string, d delivery) (int, []byte, error)
	redeliver(ctx context.Context, key string) (int, []byte, error)
}

// memory is what the service has recorded, and its state.
type memory interface {
	// checks are those of a commit, oldest first; await waits until ok accepts them.
	checks(sha string) []check
	await(ctx context.Context, sha string, ok func([]check) bool) error
	log() traffic
	// closeFork makes a user's fork accept nothing from Plumbline, or hides the fork.
	closeFork(user string, hidden bool)
	faults
}

// faults scripts the service's answers.
type faults interface {
	// route is the forge's name for an operation.
	route(at operation) string
	// inject arms a fault at an operation: Fault's own Route is not looked at, which Inject does.
	inject(at operation, f forge.Fault) *forge.FaultHandle
	Inject(f forge.Fault) *forge.FaultHandle
	// says returns the service's own answer.
	says(how refusal) forge.Action
}

// traffic is everything that passed so far.
type traffic struct {
	requests   []forge.Request
	writes     []write // in the order the service decided them
	deliveries []delivered
}

// delivery is what a service sends to its webhook: forge.Delivery or gitlab.Delivery.
type delivery interface {
	// Request makes an HTTP request of it.
	Request(ctx context.Context, url string) (*http.Request, error)
	// ID is the key that all copies of it have.
	ID() string
}

// partsOf returns a delivery's header and body.
func partsOf(d delivery) (http.Header, []byte) {
	request, err := d.Request(context.Background(), "http://localhost")
	if err != nil {
		panic(err)
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		panic(err)
	}
	return request.Header, body
}

// recordName returns the name of the GitEvent of a delivery.
func recordName(g service, d delivery) string {
	hooks := map[kind]provider.Webhook{
		githubApp: ghprovider.New(ghprovider.Options{}).Webhook, gitLab: glprovider.New(glprovider.Options{}).Webhook,
	}
	header, body := partsOf(d)
	spec, err := hooks[g.kind()].Decode(header, body)
	if err != nil {
		panic(err)
	}
	return spec.EventName()
}

// delivered, check and write are what every service remembers, in one language.
type (
	delivered = invariants.Delivery
	check     = invariants.Check
	write     = invariants.Write
)

// operation is a request of Plumbline to a service.
type operation string

const (
	anything       operation = ""
	createCheck    operation = "create a check"
	updateCheck    operation = "update a check"
	findChecks     operation = "list the checks of a commit"
	readCheck      operation = "read a check that is known"
	readDirectory  operation = "read a directory"
	readFile       operation = "read a definition"
	readReference  operation = "read what a definition refers to"
	readCommit     operation = "read a commit"
	readBranch     operation = "read where a branch is"
	readRepository operation = "read the repository"
	listChanges    operation = "list the files that a push changed"
	listPullFiles  operation = "list the files that a pull request changes"
	askPermission  operation = "ask for a user's permission"
	askTeam        operation = "ask whether a user is in a team"
	askMember      operation = "ask whether a user is a member"
	writeComment   operation = "comment on a pull request"
)

// refusal is an answer that each service words in its own way. Package forge has an Action for the
// others.
type refusal string

const (
	unauthorized refusal = "401"
	forbidden    refusal = "403"
	notFound     refusal = "404"
	busy         refusal = "409"
	slowDown     refusal = "429, for a second"
)
