// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

func (c *Checker) serveNamespaces() string {
	return fmt.Sprintf("serve-namespaces in ConfigMap %s/%s", c.Namespace, c.configMap())
}

func (c *Checker) badNamespaces(settings *config.Config) Finding {
	return Finding{
		Object:  c.serveNamespaces(),
		Problem: "cannot be read, so that a process that starts now serves no namespace of a team: " + settings.Namespaces.Broken,
		Remedy:  `write names of namespaces and globs, separated by commas, for example "team-a, ci-*, !ci-old"`,
	}
}

// unmatched returns a finding if serve-namespaces has patterns that match no namespace with a
// Repository: they may be misspelt.
func (c *Checker) unmatched(patterns []string) []Finding {
	if len(patterns) == 0 {
		return nil
	}
	return []Finding{{
		Object: c.serveNamespaces(), Problem: "lists what no namespace with a Repository matches: " + text.Some(patterns, maxNamed, ", "),
		Remedy: "correct the names, create a Repository there, or remove them from the list",
	}}
}

// listed returns the served namespaces and Plumbline's own, if serve-namespaces lists each by its
// name. Invalid settings are another finding.
func (c *Checker) listed(ctx context.Context) []string {
	settings, err := c.settings(ctx)
	if err != nil {
		return nil
	}
	if names := settings.Namespaces.Names(); names != nil {
		return append(names, c.Namespace)
	}
	return nil
}

// lacking returns where this account lacks a right. A right of a ClusterRole is not needed in all
// namespaces if the served ones are listed: the operator binds the role in each
// (config/optional/namespaces.yaml). A watch is needed in all namespaces.
func (c *Checker) lacking(
	ctx context.Context, of granted, right authorizationv1.ResourceAttributes,
) (lacking []string, err error) {
	allowed, err := c.allowed(ctx, right)
	if err != nil || allowed {
		return nil, err
	}
	if right.Namespace != "" {
		return []string{"namespace " + right.Namespace}, nil
	}
	watched := slices.Contains(of.rule.Verbs, "watch") && (right.Verb == "list" || right.Verb == "watch")
	if len(of.listed) == 0 || watched || len(of.rule.ResourceNames) > 0 {
		return []string{"any namespace"}, nil
	}
	for _, namespace := range of.listed {
		right.Namespace = namespace
		if allowed, err = c.allowed(ctx, right); err != nil {
			return nil, err
		}
		if !allowed {
			lacking = append(lacking, "namespace "+namespace)
		}
	}
	return lacking, nil
}
