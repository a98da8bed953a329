// SPDX-License-Identifier: Apache-2.0

package incomingwebhook

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"regexp"
	"slices"
	"strings"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/glob"
)

// maxTarget limits a regular expression, as package glob limits a pattern.
const maxTarget = 512

// SameSecret compares a request's secret with one that is copied, in a time that depends on
// neither.
func SameSecret(sent string, secret []byte) bool {
	a, b := sha256.Sum256([]byte(strings.TrimSpace(sent))), sha256.Sum256(secret)
	return len(secret) > 0 && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// Rule returns the first rule whose targets match the branch, and its index; -1 if there is none.
func Rule(rules []pacv1alpha1.IncomingRule, branch string) int {
	return slices.IndexFunc(rules, func(rule pacv1alpha1.IncomingRule) bool {
		return slices.ContainsFunc(rule.Targets, func(target string) bool { return matches(target, branch) })
	})
}

// matches reports whether a target matches a branch. A target that begins with ^ is a regular
// expression: no branch and no glob for one begins so, because Git does not allow it in a name. A
// target that cannot be read matches nothing, as in Pipelines-as-Code.
func matches(target, branch string) bool {
	if target == branch {
		return true
	}
	if strings.HasPrefix(target, "^") {
		if len(target) > maxTarget {
			return false
		}
		expression, err := regexp.Compile(target)
		return err == nil && expression.MatchString(branch)
	}
	pattern, err := glob.Compile("", target)
	return err == nil && pattern.Match(branch)
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
