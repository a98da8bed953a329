// SPDX-License-Identifier: Apache-2.0

// Package repository reconciles Repositories: it decides which of them owns a URL and tells in
// their conditions whether their events are served.
//
// One key is one Repository. Its reconcile is the only writer of Repository.status and of the
// status of the RepositoryClaims that name it as their owner; a claim is created by whoever comes
// first and is otherwise left alone by everybody else. Every write carries the resource version of
// an object that was read live in the same reconcile, and a conflict ends the reconcile: the next
// one reads again.
package repository
