// SPDX-License-Identifier: Apache-2.0

// Package gitlab is an in-process GitLab for tests and the demo. It speaks the routes of API v4
// that Plumbline uses, sends webhook deliveries, pauses hooks that fail, and refuses what GitLab
// refuses: rules.md lists each rule with the page it comes from.
//
// State is built with Go methods (CreateProject, Commit, CreateToken, AddHook, OpenMergeRequest
// and so on). These panic on a mistake of the test's author, such as a project that does not
// exist, since no caller could do anything about it. Everything a client does over HTTP is
// answered, never panics, and is recorded: Requests lists every call, Writes every mutating one.
//
// Faults are scripted per route with Inject, with the actions of package forge and those of this
// one. Nothing here sleeps to synchronise: WaitFor blocks on a channel that every change closes.
package gitlab
