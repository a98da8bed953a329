// SPDX-License-Identifier: Apache-2.0

// Package forge is an in-process GitHub for tests and the demo. It speaks the
// REST routes that Plumbline uses, with and without the /api/v3 prefix of
// GitHub Enterprise Server, sends signed webhook deliveries, and refuses what
// GitHub refuses: rules.md lists each rule with the page it comes from.
//
// State is built with Go methods (CreateApp, CreateRepo, Commit, Install, OpenPullRequest and so
// on). These panic on a mistake of the test's author, such as a repository that does not exist,
// since no caller could do anything about it. Everything a client does over HTTP is answered,
// never panics, and is recorded: Requests lists every call, Writes every mutating one.
//
// Faults are scripted per route with Inject. Nothing here sleeps to
// synchronise: WaitFor blocks on a channel that every change closes.
package forge
