// SPDX-License-Identifier: Apache-2.0

// Package repository reconciles Repositories. It decides which Repository owns a URL, gives slots
// to runs, and says in the conditions whether the events are served.
//
// One key is one Repository. Its reconcile is the only writer of Repository.status, and of the
// status of the RepositoryClaims that it owns. Other processes may create a claim, but do not
// change it. Every write carries the resource version of the object that it was computed from. A
// conflict ends the reconcile, and the next one reads again.
package repository
