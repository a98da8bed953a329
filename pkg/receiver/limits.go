// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"time"

	"github.com/plumbline-ci/plumbline/pkg/receiver/recorder"
)

// The limits of the receiver, each with its reason. GitHub gives a delivery up after 10 s and never
// repeats it by itself (docs.github.com, "Handling failed webhook deliveries"), so every wait below
// must fit into that.
const (
	// MaxBodyBytes is the largest body: GitHub delivers nothing over 25 MB (docs.github.com,
	// "Webhook events and payloads").
	MaxBodyBytes = 25 << 20
	// smallBodyBytes is up to what size a body is read without a slot. Nearly all bodies are
	// smaller.
	smallBodyBytes = 1 << 20
	// maxUnslottedBytes is what the bodies without a slot take together, while they arrive and
	// while they wait for one: 64 of the largest, or a thousand of the usual 30 KiB and more. With
	// maxConnections times maxHeaderBytes, fairness.MaxInFlight and maxLargeBodies it stays below
	// the container's limit of 1 GiB.
	maxUnslottedBytes = 64 << 20
	// maxLargeBodies is how many bodies over smallBodyBytes are in memory at once. Each costs about
	// three times its size: the bytes, the compressed stream and its chunks on their way
	// (docs/reliability.md has measurements of a process).
	maxLargeBodies = 2
	// maxHeaderBytes: GitHub sends about 1 KiB of headers, and proxies and meshes add some. Every
	// unverified connection may take as much.
	maxHeaderBytes = 32 << 10

	// maxConnections is for all sources together. An idle one takes some 25 KiB, one with the
	// longest headers 70: 140 MiB. Behind a proxy each delivery has a connection: 160 that are
	// handled, and those that arrive and wait.
	maxConnections = 2048
	// maxUnverified is how many connections of one source address may be unverified. A proxy is one
	// source for many senders, so the next connection is not refused: the oldest unverified one is
	// closed. A usual delivery arrives within milliseconds, so it is never the oldest one. Verified
	// and idle connections do not count.
	maxUnverified = 256
	// patience is how long a connection is not closed for being slow, as far as the limits allow.
	// It keeps usual deliveries that arrive in a burst from closing each other.
	patience = 500 * time.Millisecond
	// contendedRate is at how many bytes a second a large body must have arrived to keep its slot
	// while another one waits. It is a third of what 25 MiB in bodyTimeout need.
	contendedRate = 1 << 20
	// contendedEvery is how often a large body that waits for a slot looks for a slower one.
	contendedEvery = 100 * time.Millisecond

	// workBudget is for everything up to the answer but recorder.ConfirmTimeout: both together are
	// the 8 s of A1.
	workBudget = 7 * time.Second

	// headerTimeout is for the headers, from the start of the connection or the first byte of the
	// request. Services send them in one packet.
	headerTimeout = 2 * time.Second
	// Every pieceBytes of a body have pieceTime, the first ones together with the headers: 64 KiB a
	// second. A small body at that speed still arrives before the service gives up, and two packets
	// in a row may be lost.
	pieceBytes = 128 << 10
	pieceTime  = 2 * time.Second
	// bodyTimeout is for headers and body together. The service gives up a delivery that takes
	// longer. 25 MiB in 8 s are 26 Mbit/s.
	bodyTimeout = 8 * time.Second
	// writeTimeout is for body, work and a slow reader of a short answer.
	writeTimeout = bodyTimeout + workBudget + recorder.ConfirmTimeout + 4*time.Second
	// idleTimeout is longer than the keep-alive of common proxies (60 s). So they close first, and
	// never write into a connection that the receiver is closing.
	idleTimeout = 75 * time.Second

	// unverifiedDelay is when an unverified sender is answered: later than any look-up usually
	// takes, so that the time does not show what was looked up (S34).
	unverifiedDelay = 100 * time.Millisecond
	// UnverifiedQPS and UnverifiedBurst limit the deliveries of all unverified senders together;
	// those past the limit are answered 503. Each may cost two reads of the API server, which a
	// client of their own makes. The burst is for a hook whose token was changed on one side only;
	// Git services send nothing at this rate for long.
	UnverifiedQPS   = 20
	UnverifiedBurst = 100
	// planWait is how long the answer to a request to /incoming waits for the plan. An event is
	// usually planned in less than a second. firstPlanPoll is when the plan is read first; each
	// wait is twice the one before. maxPlanWaits is how many requests wait: the others are answered
	// at once, without names. Together they cause some 30 reads a second.
	planWait      = 4 * time.Second
	firstPlanPoll = 200 * time.Millisecond
	maxPlanWaits  = 32
	// maxGroupSecrets is how many webhook secrets are compared with the token of a delivery for a
	// project that is not onboarded: a group's webhook has one token, which any of the group's
	// Repositories may have. They are taken from the namespaces in turn, so that no namespace
	// displaces the others. A comparison takes a microsecond and no call.
	maxGroupSecrets = 64
	// maxGroupHashed is how many bytes are hashed for that where the signature covers the body:
	// some 20 ms. Usual bodies are tried with all secrets.
	maxGroupHashed = 16 << 20
	// groupReuse is how long it is cached which webhook secrets the Repositories of a group name,
	// and maxGroups for how many groups.
	groupReuse = time.Second
	maxGroups  = 1024
	// globalReuse is how long it is cached that there is no global Repository, or that it could not
	// be read.
	globalReuse = time.Second

	// DrainWait is how long the server goes on serving after SIGTERM: until every kube-proxy and
	// ingress knows that the endpoint is gone. 15 s is a usual bound for it (H3).
	DrainWait = 15 * time.Second
	// ShutdownWait is how long the remaining connections may take after that: the longest a
	// delivery can take.
	ShutdownWait = bodyTimeout + workBudget + recorder.ConfirmTimeout
	// probeEvery, probeTimeout and probeFailures pace the round trips through the receiver's own
	// listener that readiness needs: a dead listener is noticed in about 6 s.
	probeEvery    = 2 * time.Second
	probeTimeout  = time.Second
	probeFailures = 3

	// stuckAfter makes the process not live. Every wait of a delivery is bounded, by writeTimeout
	// in all, so one that takes twice as long never ends and never releases its slot.
	stuckAfter = 2 * writeTimeout

	// retryAfter is the Retry-After of a 503 when the API server named none.
	retryAfter = 30 * time.Second
	// maxRetryAfter bounds the Retry-After that the API server names.
	maxRetryAfter = 5 * time.Minute

	// maxLogText bounds untrusted or foreign text in log lines and answers, in bytes.
	maxLogText = 512
)
