// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

const (
	// repositoryPage is how many Repositories one call reads; each may be large.
	repositoryPage = 100
	// maxNamed is how many Repositories or namespaces one finding names: examples are enough.
	maxNamed = 10
)

// repositoriesOfTeams finds Repositories whose Git service is not called because of its address. An
// installation that was upgraded may have served them before. The addresses that a name resolves to
// are checked with each call. It also finds names in serve-namespaces that match no namespace.
func (c *Checker) repositoriesOfTeams(ctx context.Context) []Finding {
	const object = "The Git services of Repositories"
	settings, err := c.settings(ctx)
	if err != nil {
		return []Finding{c.unread(ctx, object, err, "get the ConfigMap", roles)}
	}
	if settings.Namespaces.Broken != "" {
		return []Finding{c.badNamespaces(settings)}
	}
	reach := settings.TenantsGit()
	var refused []string
	namespaces := []string{c.Namespace}
	named := map[string]bool{} // by host
	options := metav1.ListOptions{Limit: repositoryPage}
	for {
		page, err := c.repositories.Repositories(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return []Finding{c.unread(ctx, object, err, "list Repositories", "config/")}
		}
		for i := range page.Items {
			r := &page.Items[i]
			namespaces = append(namespaces, r.Namespace)
			if r.Namespace != c.Namespace && settings.Namespaces.Serve(r.Namespace) {
				refused = append(refused, refusal(r, reach, named)...)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	findings := c.unmatched(settings.Namespaces.Unmatched(namespaces))
	if len(refused) == 0 {
		return findings
	}
	return append(findings, Finding{
		Object:  object,
		Problem: "are not all called: " + text.Some(refused, maxNamed, "; "),
		Remedy: fmt.Sprintf(
			"list the hosts that may be called in git-allowed-hosts of ConfigMap %s/%s (tenants name them, so list only what you know), or correct git_provider.url",
			c.Namespace, c.configMap(),
		),
	})
}

// refusal returns why the Git service of a Repository is not called; nothing if it is called. It
// names each host once.
func refusal(r *pacv1alpha1.Repository, reach egress.Policy, named map[string]bool) []string {
	host, err := NotCalled(r, reach)
	if err == nil || named[host] {
		return nil
	}
	named[host] = true
	return []string{fmt.Sprintf("Repository %s/%s: %s", r.Namespace, r.Name, err)}
}

// NotCalled returns why the Git service that a Repository of a tenant names is not called, and its
// host; nil if it is called. The addresses that the host resolves to are checked with each call.
func NotCalled(r *pacv1alpha1.Repository, reach egress.Policy) (host string, why error) {
	git := r.Spec.GitProvider
	if git == nil || git.Secret == nil ||
		git.Type == "github" && git.WebhookSecret == nil { // the App's server is set by the administrator
		return "", nil
	}
	u, err := url.Parse(strings.TrimSpace(cmp.Or(git.URL, r.Spec.URL)))
	if err != nil || u.Hostname() == "" {
		return "", nil //nolint:nilerr // the Repository's own condition reports an invalid URL
	}
	_, err = reach.Name(u, false)
	if refused := (*egress.RefusedError)(nil); errors.As(err, &refused) {
		return u.Host, refused
	}
	return "", nil
}

// settings reads the ConfigMap; without one it returns the default. The processes log invalid keys.
func (c *Checker) settings(ctx context.Context) (*config.Config, error) {
	cm, err := c.kube.CoreV1().ConfigMaps(c.Namespace).Get(ctx, c.configMap(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return config.Default(), nil
	}
	if err != nil {
		return nil, err
	}
	settings, _ := config.New(cm.Data)
	return settings, nil
}
