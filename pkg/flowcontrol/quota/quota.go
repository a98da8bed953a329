// SPDX-License-Identifier: Apache-2.0

// Package quota bounds what open events keep in the API server: how many there are, and how many
// bytes of their deliveries' payloads and of their plans, in total, for each namespace and for each
// Repository. Receivers refuse deliveries past a budget; controllers let plans wait.
package quota

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// The share of the total that one namespace and one Repository may have at most. A tenant has a
// namespace and may make any number of Repositories in it, so that a budget of each Repository
// alone would bound nothing.
const (
	namespaceShare  = 4
	repositoryShare = 10
	// pullShare is the share of a Repository's events that one pull request may have, leastOfPull
	// how many it may have in any case. Everybody may write comments on a pull request of their
	// own; while a Git service is away each of them stays open.
	pullShare   = 4
	leastOfPull = 10
)

// Limits are what open events may use.
type Limits struct {
	// Events is their number.
	Events int
	// Bytes are those that their payloads and plans take in etcd, compressed and in base64.
	Bytes int64
}

// In returns the part of the total that a scope may use, at least one event.
func (total Limits) In(s Scope) Limits {
	share := 1
	switch {
	case s.Pull != "":
		of := total.In(Scope{Namespace: s.Namespace, Name: s.Name})
		return Limits{Events: max(leastOfPull, of.Events/pullShare), Bytes: of.Bytes}
	case s.Name != "":
		share = repositoryShare
	case s.Namespace != "":
		share = namespaceShare
	}
	return Limits{Events: max(1, total.Events/share), Bytes: max(1, total.Bytes/int64(share))}
}

// String says the limits to people.
func (l Limits) String() string {
	return fmt.Sprintf("%d events or %d MiB of payloads and plans", l.Events, l.Bytes>>20)
}

// Scope is whose budget it is: that of a pull request, a Repository (without one), its namespace
// (without a name), or the total (without all of them).
type Scope struct {
	Namespace, Name string
	// Pull is the subject of a pull request's events (GitEventSpec.Subject).
	Pull string
}

// String names the scope in a sentence.
func (s Scope) String() string {
	switch {
	case s.Pull != "":
		return fmt.Sprintf("one pull request of Repository %s/%s", s.Namespace, s.Name)
	case s.Name != "":
		return fmt.Sprintf("Repository %s/%s", s.Namespace, s.Name)
	case s.Namespace != "":
		return "all Repositories of namespace " + s.Namespace
	}
	return "all Repositories of the installation"
}

// The reasons of a budget that is met, for logs, metrics and conditions.
const (
	ReasonPull       = "PullRequestBudget"
	ReasonRepository = "RepositoryBudget"
	ReasonNamespace  = "NamespaceBudget"
	ReasonTotal      = "TotalBudget"
)

// Reason names the scope's budget.
func (s Scope) Reason() string {
	switch {
	case s.Pull != "":
		return ReasonPull
	case s.Name != "":
		return ReasonRepository
	case s.Namespace != "":
		return ReasonNamespace
	}
	return ReasonTotal
}

// scopes are those of a Repository's events, the narrowest first. Of an event whose Repository is
// not known, which the version before recorded, it is the total.
func scopes(repository types.NamespacedName) []Scope {
	if repository.Name == "" {
		return []Scope{{}}
	}
	return []Scope{{Namespace: repository.Namespace, Name: repository.Name}, {Namespace: repository.Namespace}, {}}
}

// scopes are all that an event counts for, the narrowest first.
func (e entry) scopes() []Scope {
	all := scopes(e.repository)
	if e.subject == "" || e.repository.Name == "" {
		return all
	}
	return append([]Scope{{Namespace: e.repository.Namespace, Name: e.repository.Name, Pull: e.subject}}, all...)
}
