// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// defaultIncomingKey is the key of an incoming rule's Secret that the rule need not name.
const defaultIncomingKey = "secret"

// MaxIncomingRules is how many rules of spec.incoming are read: the secret of each is copied to the
// receivers.
const MaxIncomingRules = 64

// IncomingRule is a rule for calls of POST /incoming.
type IncomingRule struct {
	Incoming
	// Key is where the secret of the calls is. Name is empty if the rule names none.
	Key SecretKey
}

// IncomingRules returns the rules of a Repository in their order, at most MaxIncomingRules. Without
// rules of its own, it has those of the global Repository, which may be nil. Each secret is read
// from the namespace of the Repository that names it.
func IncomingRules(own, global *Repository) []IncomingRule {
	from := own
	if own.Spec.Incomings == nil && global != nil {
		from = global
	}
	if from.Spec.Incomings == nil {
		return nil
	}
	listed := *from.Spec.Incomings
	var all []IncomingRule
	for _, rule := range listed[:min(len(listed), MaxIncomingRules)] {
		all = append(all, IncomingRule{rule, keyOf(&rule.Secret, from.Namespace, defaultIncomingKey)})
	}
	return all
}
