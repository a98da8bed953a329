// SPDX-License-Identifier: Apache-2.0

package incomingwebhook

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/glob"
)

// maxSteps limits what the targets of a Repository cost for one request, in the steps of package
// glob: some 20 ms, or 400 usual patterns. A team that writes more must not slow down the receiver.
const maxSteps = 20_000

// SameSecret compares a request's secret with one that is copied, in a time that depends on
// neither.
func SameSecret(sent string, secret []byte) bool {
	a, b := sha256.Sum256([]byte(strings.TrimSpace(sent))), sha256.Sum256(secret)
	return len(secret) > 0 && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// Rule returns the index of the first rule whose targets match the branch, -1 if there is none.
// Targets after maxSteps match only the branch that they name.
func Rule(rules []pacv1alpha1.IncomingRule, branch string) int {
	steps := 0
	return slices.IndexFunc(rules, func(rule pacv1alpha1.IncomingRule) bool {
		return slices.ContainsFunc(rule.Targets, func(target string) bool {
			if target == branch || steps > maxSteps {
				return target == branch
			}
			matched, cost := matches(target, branch)
			steps += cost
			return matched
		})
	})
}

// matches reports whether a pattern matches a branch, and what that cost. A pattern that begins
// with ^ is a regular expression: no branch and no glob for one begins so, because Git does not
// allow it in a name. A pattern that cannot be read matches nothing, as in Pipelines-as-Code.
func matches(target, branch string) (matched bool, steps int) {
	if strings.HasPrefix(target, "^") {
		expression, parts, err := glob.CompileExpression(target)
		return err == nil && expression.MatchString(branch), len(target) + parts*(1+len(branch)/50)
	}
	pattern, err := glob.Compile("", target)
	if err != nil {
		return false, len(target)
	}
	return pattern.Match(branch), pattern.Steps([]string{branch})
}

// CheckParams refuses params that the rule does not list.
func (r *Request) CheckParams(rule *pacv1alpha1.IncomingRule) *Refusal {
	for name := range r.Params {
		if !slices.Contains(rule.Params, name) {
			return refuse(http.StatusForbidden,
				"the param %s is not allowed: add it to params of the rule in spec.incoming of the Repository", shown(name))
		}
		if slices.Contains(reserved(), name) {
			return refuse(http.StatusForbidden, "the param %s cannot be set: Plumbline gives it its value", name)
		}
	}
	return nil
}

// reserved are the variables that a request never sets: the name of the Secret that each run gets,
// and the parts of the event in expressions.
func reserved() []string { return []string{"git_auth_secret", "body", "headers", "files", "pac"} }
