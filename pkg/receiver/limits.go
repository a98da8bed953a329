// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"time"
)

// Every limit of the receiver, with its reason. GitHub gives a delivery up after 10 s and never
// repeats it by itself (docs.github.com, "Handling failed webhook deliveries"), so every wait below
// has to fit into that.
const (
	// MaxBodyBytes is the largest body: GitHub delivers nothing over 25 MB (docs.github.com,
	// "Webhook events and payloads").
	MaxBodyBytes = 25 << 20
	// smallBodyBytes is read without any slot; nearly every delivery is below it.
	smallBodyBytes = 1 << 20
	// maxUnslottedBytes is what the bodies that have no slot take together, as they arrive and
	// while they wait for one: 64 of the largest, or a thousand of the usual 30 KiB and more. With
	// maxConnections times maxHeaderBytes, fairness.MaxInFlight and maxLargeBodies it stays below
	// the container's limit of 1 GiB.
	maxUnslottedBytes = 64 << 20
	// maxLargeBodies is how many bodies over smallBodyBytes are held at once. Each costs about
	// three times its size: the bytes, the compressed stream and its chunks on their way
	// (docs/reliability.md has what a process was measured at).
	maxLargeBodies = 2
	// maxHeaderBytes: GitHub sends about 1 KiB of headers, proxies and meshes add some. Every
	// connection may take as much without proving anything.
	maxHeaderBytes = 32 << 10

	// maxConnections is for all sources together. An idle one takes some 25 KiB, one with the
	// longest headers 70: 140 MiB. Behind a proxy each delivery under way has one: 160 that are
	// handled, and those that arrive and wait.
	maxConnections = 2048
	// maxUnverified is how many connections of one source address may be sending, or have proved
	// nothing yet. A proxy is one source for all the world, so the next one is not refused: the one
	// that has been at it for the longest is closed. A true delivery arrives within milliseconds
	// and is never that one. Those that are verified or idle do not count.
	maxUnverified = 256
	// patience is for how long nobody is closed for being slow, as far as there is room: it keeps a
	// burst of true deliveries that arrive at once from closing each other.
	patience = 500 * time.Millisecond
	// contendedRate is what a large body has to have arrived at, in bytes a second, to keep its
	// slot while another one waits. 25 MiB need three times as much to arrive in bodyTimeout.
	contendedRate = 1 << 20
	// contendedEvery is how often a large body that waits for a slot looks for one that is slower
	// than that.
	contendedEvery = 100 * time.Millisecond

	// workBudget is for everything up to the answer but confirmBudget: both together are the 8 s of
	// A1.
	workBudget = 7 * time.Second
	// confirmBudget is for the one read that resolves a create whose outcome is unknown; it is not
	// taken from workBudget, which that create may have used up.
	confirmBudget = time.Second
	// KubeCallBudget bounds each call to the API server, so that a call that hangs leaves time to
	// answer 503. -api-wait sets another one.
	KubeCallBudget = 3 * time.Second

	// headerTimeout is for the headers, from the connection's begin or the request's first byte.
	// Services send them in one packet.
	headerTimeout = 2 * time.Second
	// Every pieceBytes of a body have pieceTime, the first ones together with the headers: 64 KiB a
	// second. It is as slow as a small body can be and still arrive before the service gives up,
	// and long enough for two packets that are lost in a row.
	pieceBytes = 128 << 10
	pieceTime  = 2 * time.Second
	// bodyTimeout is for headers and body in all. Whoever needs longer has been given up by the
	// service. 25 MiB in 8 s are 26 Mbit/s.
	bodyTimeout = 8 * time.Second
	// writeTimeout is for body, work and a slow reader of a short answer.
	writeTimeout = bodyTimeout + workBudget + confirmBudget + 4*time.Second
	// idleTimeout is longer than the keep-alive of common proxies (60 s), so that they close first
	// and never write into a connection that we are closing.
	idleTimeout = 75 * time.Second

	// unverifiedAnswer is when whoever proved nothing is answered: later than any look-up usually
	// takes, so that the time does not tell what was looked up (S34).
	unverifiedAnswer = 100 * time.Millisecond
	// UnverifiedQPS and UnverifiedBurst are for deliveries that nobody vouches for, in all: those
	// past them are answered 503. Each may cost two reads of the API server, which are taken from a
	// client of their own. The burst is for a hook whose token was changed on one side only;
	// nothing of a Git service goes on at this rate.
	UnverifiedQPS   = 20
	UnverifiedBurst = 100
	// maxVouchers is how many webhook secrets are compared with the token of a delivery for a
	// repository that nobody has onboarded: a group's webhook has one, which any of the group's
	// Repositories may hold. They are taken from the namespaces in turn; to compare one takes a
	// microsecond and no call.
	maxVouchers = 64
	// groupReuse is how long it is believed where the Repositories of a group keep their webhook
	// secrets, and maxGroups of how many groups.
	groupReuse = time.Second
	maxGroups  = 1024
	// globalReuse is how long it is believed that there is no global Repository, and that it could
	// not be read.
	globalReuse = time.Second

	// DrainWait is how long the server goes on serving after SIGTERM: until every kube-proxy and
	// ingress has heard that the endpoint is gone. 15 s is a usual bound for it (H3).
	DrainWait = 15 * time.Second
	// ShutdownWait is how long the connections that are left then may take: the longest a delivery
	// can.
	ShutdownWait = bodyTimeout + workBudget + confirmBudget
	// probeEvery, probeTimeout and probeFailures pace the round trips through our own listener that
	// readiness asks for: a listener that is dead is noticed in about 6 s.
	probeEvery    = 2 * time.Second
	probeTimeout  = time.Second
	probeFailures = 3

	// stuckAfter makes the process not live: every wait of a delivery is bounded, by writeTimeout
	// in all, so one that takes twice as long never ends and keeps its place for ever.
	stuckAfter = 2 * writeTimeout

	// retryAfter is the Retry-After of a 503 when the API server named none.
	retryAfter = 30 * time.Second
	// maxRetryAfter keeps a strange answer of the API server from postponing a redelivery for long.
	maxRetryAfter = 5 * time.Minute

	// budgetRetry is the Retry-After when a budget of open events is used up. Events end when
	// whoever looks after the Repository mends something, so sooner is of no use.
	budgetRetry = maxRetryAfter

	// payloadReuse is how long another attempt at the same delivery may take over the payload that
	// an earlier one wrote. It is half of the age at which the sweep deletes a payload without an
	// event: the other half is for clocks that differ.
	payloadReuse = 30 * time.Minute
	// recentTime is how long ago an event may have happened of which no record is deleted yet: the
	// sweep (youngest there) lets each stub stay for half an hour. 20 minutes are left for clocks
	// that differ: clockTolerance for ours and the API server's, the rest for the Git service's and
	// the controllers'.
	recentTime = 10 * time.Minute
	// clockTolerance is what nodes that are kept in time never differ by, and more than any create
	// takes.
	clockTolerance = 5 * time.Minute
	// clockAge is for how long a comparison of clocks counts. A quiet receiver reads twice more for
	// one delivery in that time.
	clockAge = 10 * time.Minute
	// maxReopened is how often one delivery may be processed again under a new name.
	maxReopened = 20
	// maxQuotaRaces is how often a create is sent that a ResourceQuota's bookkeeping answers with a
	// conflict.
	maxQuotaRaces = 4
	// maxNameRaces is how often one name is looked at again because another replica wrote it in
	// between.
	maxNameRaces = 3

	// maxLogText cuts untrusted or foreign text in log lines and answers, in bytes.
	maxLogText = 512
)

// APIWait is how long the receiver waits for each call to the API server; zero is KubeCallBudget.
type APIWait time.Duration

// budget returns a budget of calls to the API server, in proportion to how long each call may take.
func (w APIWait) budget(byDefault time.Duration) time.Duration {
	if w <= 0 {
		return byDefault
	}
	return time.Duration(byDefault.Seconds() / KubeCallBudget.Seconds() * float64(w))
}

// call returns a context for one call to the API server.
func (w APIWait) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, w.budget(KubeCallBudget))
}
