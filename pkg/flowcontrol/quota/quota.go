// SPDX-License-Identifier: Apache-2.0

// Package quota limits what unsettled events store in the API server: the number of events, and the
// bytes of their payloads and plans. There are budgets for the total, for each namespace and for
// each Repository. When a budget is exhausted, receivers refuse deliveries, and controllers let
// plans wait.
package quota

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// One namespace may have at most this part of the total, and so may one Repository. A tenant may
// create any number of Repositories in its namespace, so a budget for each Repository alone would
// limit nothing.
const (
	namespaceShare  = 4
	repositoryShare = 10
	// pullShare is the part of a Repository's events that one pull request may have, leastOfPull
	// how many it may always have. Every user may comment on their own pull request, and each
	// comment is an unsettled event while the Git service is unavailable.
	pullShare   = 4
	leastOfPull = 10
)

// Limits are what unsettled events may use.
type Limits struct {
	// Events is their number.
	Events int
	// Bytes is what their payloads and plans take in etcd, compressed and in base64.
	Bytes int64
}

// In returns the part of the total that a scope may use: at least one event.
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

// String returns the limits for messages.
func (l Limits) String() string {
	return fmt.Sprintf("%d events or %d MiB of payloads and plans", l.Events, l.Bytes>>20)
}

// Scope says whose budget it is: a pull request's, a Repository's (no Pull), a namespace's (no Name
// either), or the total (the zero value).
type Scope struct {
	Namespace, Name string
	// Pull is the subject of a pull request's events (GitEventSpec.Subject).
	Pull string
}

// String returns the scope for messages.
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

// The reasons of an exhausted budget, for logs, metrics and conditions.
const (
	ReasonPull       = "PullRequestBudget"
	ReasonRepository = "RepositoryBudget"
	ReasonNamespace  = "NamespaceBudget"
	ReasonTotal      = "TotalBudget"
)

// Reason returns the reason of the scope's exhausted budget.
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

// scopes returns the scopes of a Repository's events, the narrowest first. It returns the total for
// events without a Repository, which the version before recorded.
func scopes(repository types.NamespacedName) []Scope {
	if repository.Name == "" {
		return []Scope{{}}
	}
	return []Scope{{Namespace: repository.Namespace, Name: repository.Name}, {Namespace: repository.Namespace}, {}}
}

// scopes returns all scopes in which an event counts, the narrowest first.
func (e entry) scopes() []Scope {
	all := scopes(e.repository)
	if e.subject == "" || e.repository.Name == "" {
		return all
	}
	return append([]Scope{{Namespace: e.repository.Namespace, Name: e.repository.Name, Pull: e.subject}}, all...)
}
