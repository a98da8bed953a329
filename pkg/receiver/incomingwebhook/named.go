// SPDX-License-Identifier: Apache-2.0

package incomingwebhook

import (
	"net/http"
	"slices"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/receiver/secrets"
)

// maxNamesakes is how many Repositories of one name are compared with a request without a
// namespace. With at most 64 rules each, that takes some milliseconds.
const maxNamesakes = 256

// Named is a Repository that a request names, and whose secret the request has.
type Named struct {
	Repository *pacv1alpha1.Repository
	rules      []pacv1alpha1.IncomingRule
	// has says which of the rules have the secret.
	has []bool
}

// Copies are the copies of the rules' secrets (secrets.Copies has the contract).
type Copies interface {
	Copy(key pacv1alpha1.SecretKey) (secrets.Secret, error)
	Request(key pacv1alpha1.SecretKey, urgent bool)
}

// Find returns the Repositories that a request names and whose secret it has. It requests newer
// copies of the secrets that it has. Others are the secrets of the other Repositories.
func Find(
	r *Request, namesakes []*pacv1alpha1.Repository, global *pacv1alpha1.Repository, copies Copies,
) (found []Named, others []pacv1alpha1.SecretKey) {
	if r.Namespace != "" {
		namesakes = slices.DeleteFunc(slices.Clone(namesakes), func(repository *pacv1alpha1.Repository) bool {
			return repository.Namespace != r.Namespace
		})
	}
	for _, repository := range namesakes[:min(len(namesakes), maxNamesakes)] {
		named := Named{Repository: repository, rules: pacv1alpha1.IncomingRules(repository, global)}
		if named.compare(r, copies) {
			found = append(found, named)
			continue
		}
		for _, rule := range named.rules {
			if rule.Key.Name != "" {
				others = append(others, rule.Key)
			}
		}
	}
	return found, others
}

// compare compares the secret of a request with that of each rule.
func (n *Named) compare(r *Request, copies Copies) (known bool) {
	for _, rule := range n.rules {
		secret, err := copies.Copy(rule.Key) // an error is a missing copy
		current, previous := SameSecret(r.Secret, secret.Current), SameSecret(r.Secret, secret.Previous)
		has := err == nil && (current || previous)
		if has {
			copies.Request(rule.Key, false)
		}
		n.has, known = append(n.has, has), known || has
	}
	return known
}

// Check refuses a request that the Repository's rules do not allow. Its sender knows a secret of
// the Repository.
func (n *Named) Check(r *Request) *Refusal {
	at := Rule(n.rules, r.Branch)
	switch {
	case at < 0:
		return refuse(http.StatusForbidden,
			"no rule in spec.incoming of the Repository has a target that matches the branch: add it to targets")
	case !n.has[at]:
		return refuse(
			http.StatusForbidden,
			"the first rule in spec.incoming whose targets match the branch has another secret: "+
				"send that one, or move your rule before it",
		)
	}
	return r.CheckParams(&n.rules[at])
}
