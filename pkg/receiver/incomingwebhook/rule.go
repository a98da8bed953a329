// SPDX-License-Identifier: Apache-2.0

package incomingwebhook

import (
	"crypto/sha256"
	"crypto/subtle"
	"maps"
	"net/http"
	"slices"
	"strings"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/glob"
)

const (
	// maxSteps limits what the targets of a Repository cost for one request, in the steps of
	// package glob: at most some 40 ms. That is 100 usual globs. A team that writes more must not
	// slow down the receiver.
	maxSteps = 5_000
	// partSteps is what it takes to compile one part of a regular expression: a class such as \pL
	// has hundreds of ranges.
	partSteps = 8
)

// SameSecret compares a request's secret with one that is copied, in a time that depends on
// neither.
func SameSecret(sent string, secret []byte) bool {
	a, b := sha256.Sum256([]byte(strings.TrimSpace(sent))), sha256.Sum256(secret)
	return len(secret) > 0 && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// Rule returns the index of the first rule whose targets match the branch, -1 if there is none.
// Nothing matches after maxSteps: a rule that is not read might be the first. The name of a branch
// takes none.
func Rule(rules []pacv1alpha1.IncomingRule, branch string) int {
	steps := 0
	return slices.IndexFunc(rules, func(rule pacv1alpha1.IncomingRule) bool {
		return slices.ContainsFunc(rule.Targets, func(target string) bool {
			if steps > maxSteps || target != branch && !strings.ContainsAny(target, `*?[{\^`) {
				return false
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
	if target == branch { // also a branch such as a{b}
		return true, 0
	}
	if strings.HasPrefix(target, "^") {
		expression, parts, err := glob.CompileExpression(target)
		return err == nil && expression.MatchString(branch), len(target) + parts*(partSteps+len(branch)/10)
	}
	pattern, err := glob.Compile("", target)
	if err != nil {
		return false, len(target)
	}
	return pattern.Match(branch), pattern.Steps([]string{branch})
}

// CheckParams refuses params that the rule does not list. Of several it names the first by name.
func (r *Request) CheckParams(rule *pacv1alpha1.IncomingRule) *Refusal {
	for _, name := range slices.Sorted(maps.Keys(r.Params)) {
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
