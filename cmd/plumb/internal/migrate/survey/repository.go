// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/delivery"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/pac"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab"
)

const (
	pageOfFields   = "docs/migration.md#settings-that-do-nothing"
	pageOfHosts    = "docs/gitlab.md#a-gitlab-in-your-own-network"
	pageOfGitLab   = "docs/gitlab.md#set-up"
	pageOfWebhook  = "docs/github.md#without-an-app"
	pageOfStarting = "docs/migration.md#when-a-pipeline-starts"
)

// moving is a Repository that moves.
type moving struct {
	// Repository is completed by the global one; own is as it is stored.
	*pacv1alpha1.Repository
	own, global *pacv1alpha1.Repository
	config      *config.Config
	// app is the Secret of the GitHub App; nil if there is none.
	app  *corev1.Secret
	runs []started
}

// name is how a report names the Repository.
func (m *moving) name() string { return m.Namespace + "/" + m.Name }

// service returns the Git service of the Repository: the one that it names, that of its last
// PipelineRun, or the one that its host looks like.
func (m *moving) service() string {
	if git := m.Spec.GitProvider; git != nil && git.Type != "" {
		return git.Type
	}
	if len(m.runs) > 0 {
		return m.runs[0].service
	}
	u, err := url.Parse(m.Spec.URL)
	if err != nil {
		return github.Name
	}
	service, err := delivery.For("", u.Host)
	if err != nil {
		return github.Name
	}
	return service
}

// byApp reports whether the GitHub App serves the Repository: its last run says so, or it names no
// token.
func (m *moving) byApp() bool {
	if m.service() != github.Name {
		return false
	}
	if len(m.runs) > 0 {
		return m.runs[0].byApp
	}
	git := m.Spec.GitProvider
	return git == nil || git.Secret == nil || git.WebhookSecret == nil
}

// repositories reports on all Repositories.
func (s *surveyor) repositories(ctx context.Context, installations []pac.Controller) ([]*moving, error) {
	all, err := s.readRepositories(ctx, installations)
	if err != nil {
		return nil, err
	}
	own, err := s.configMap(ctx, s.System, s.ConfigMap)
	if err != nil {
		return nil, err
	}
	settings, _ := config.New(own)
	var app *corev1.Secret
	for n, i := range installations {
		read, err := s.examine(ctx, i, own)
		if err != nil {
			return nil, err
		}
		secret, err := s.app(ctx, i, n == 0 && slices.ContainsFunc(all, (*moving).byApp))
		if err != nil {
			return nil, err
		}
		if n == 0 {
			settings, app = read, secret
			continue
		}
		s.add(Finding{
			Kind: Blocks, Topic: Cluster, Page: "docs/namespaces.md#several-installations-on-one-cluster",
			Says: "this is another controller, with settings and a GitHub App of its own, and one Plumbline has one App",
			Remedy: "delete it if it is not used. Otherwise install another Plumbline for its Repositories, " +
				"or move them to the App of " + installations[0].Deployment,
		}, "", i.Namespace+"/"+i.Deployment)
	}
	s.GitHubURL = cmp.Or(strings.ToLower(strings.TrimRight(s.GitHubURL, "/")), settings.GitHubURL)
	for _, m := range all {
		m.config, m.app = settings, app
		s.fields(m)
		s.events(m)
		if err := s.credentials(ctx, m); err != nil {
			return nil, err
		}
	}
	s.duplicates(all)
	return all, nil
}

// readRepositories returns the Repositories, with what Pipelines-as-Code has started for each.
func (s *surveyor) readRepositories(ctx context.Context, installations []pac.Controller) ([]*moving, error) {
	var all []*moving
	globals := map[string]*pacv1alpha1.Repository{}
	err := kube.Pages(metav1.ListOptions{}, func(o metav1.ListOptions) (string, error) {
		list, err := s.cluster.Own.PipelinesascodeV1alpha1().Repositories(metav1.NamespaceAll).List(ctx, o)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			r := &list.Items[i]
			if slices.ContainsFunc(installations, func(i pac.Controller) bool {
				return i.Namespace == r.Namespace && i.Global == r.Name
			}) {
				globals[r.Namespace] = r
				continue
			}
			all = append(all, &moving{Repository: r, own: r})
		}
		return list.Continue, nil
	})
	if err != nil {
		return nil, s.unlessForbidden("reading Repositories", err)
	}
	started, err := s.started(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		m.runs = started[m.name()]
		if len(installations) == 0 {
			continue
		}
		if m.global = globals[installations[0].Namespace]; m.global != nil {
			m.Repository = m.own.DeepCopy()
			m.Spec = *m.own.Spec.WithGlobal(&m.global.Spec)
		}
	}
	return all, nil
}

// fieldOfService is a field that events reports.
const fieldOfService = "git_provider.type"

// fields reports fields that do not mean the same.
func (s *surveyor) fields(m *moving) {
	for _, field := range m.Spec.IgnoredFields() {
		name, _, _ := strings.Cut(field, ":")
		if name == fieldOfService {
			continue
		}
		f := Finding{Kind: Differs, Topic: Repositories, Says: field + " has no effect", Page: pageOfFields}
		for _, setting := range pacv1alpha1.UnservedFields() {
			if setting.Name == name {
				f.Says += ": " + setting.Instead
			}
		}
		s.add(f, m.name(), m.name())
	}
	if m.service() == gitlab.Name && m.Spec.Settings != nil && m.Spec.Settings.Policy != nil {
		s.add(Finding{
			Kind: Differs, Topic: Repositories, Page: "docs/migration.md#who-may-start-runs",
			Says:   "settings.policy applies at GitLab, where Pipelines-as-Code ignores it",
			Remedy: "list groups by their full paths, or remove it",
		}, m.name(), m.name())
	}
}

// events reports what keeps events of a Repository from starting anything.
func (s *surveyor) events(m *moving) {
	block := func(says, remedy, page string, detail ...string) {
		s.add(Finding{Kind: Blocks, Topic: Repositories, Says: says, Remedy: remedy, Page: page}, m.name(),
			strings.Join(append([]string{m.name()}, detail...), ": "))
	}
	canonical, err := v1alpha1.CanonicalURL(m.Spec.URL)
	if err != nil {
		block("its url cannot be served: "+err.Error(), "correct spec.url", "")
		return
	}
	if !slices.Contains(delivery.Names(), m.service()) {
		block("the Git service "+m.service()+" is not served", "leave its namespace at Pipelines-as-Code", pageOfFields)
	}
	if m.byApp() && !strings.HasPrefix(canonical+"/", s.GitHubURL+"/") {
		block(
			fmt.Sprintf("it is not at %s, and deliveries of the GitHub App are accepted for repositories there only",
				s.GitHubURL),
			"set github-url in ConfigMap plumbline to the server of the App, or name the Git service in git_provider",
			"docs/github.md#set-up",
		)
	}
	if service, err := pacv1alpha1.ServiceOf(m.own, m.global); err == nil && m.byApp() && service.HasWebhook() {
		block("the GitHub App serves it, and it names a token and a webhook secret: "+
			"Plumbline serves its webhook, and the App starts nothing for it",
			"remove git_provider.webhook_secret, or make sure that the repository has the webhook", pageOfWebhook)
	}
	if err := plan.CheckParams(m.Repository); err != nil {
		block("a param is invalid, and events would wait. Pipelines-as-Code ignores all params instead", "correct the param",
			pageOfPlaceholders, err.Error())
	}
	if _, err := preflight.NotCalled(m.own, m.config.TenantsGit()); err != nil {
		block("the Git service is not called because of its address",
			"list the host in git-allowed-hosts of ConfigMap plumbline", pageOfHosts, err.Error())
	}
}

// duplicates reports Repositories with the URL of an older one. Pipelines-as-Code starts pipelines
// with target-namespace in the others.
func (s *surveyor) duplicates(all []*moving) {
	oldest := map[string]*moving{}
	sorted := slices.SortedStableFunc(slices.Values(all), func(a, b *moving) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.name(), b.name()))
	})
	for _, m := range sorted {
		canonical, err := v1alpha1.CanonicalURL(m.Spec.URL)
		if err != nil {
			continue
		}
		if first := oldest[canonical]; first != nil {
			s.add(Finding{
				Kind: Differs, Topic: Repositories, Page: pageOfStarting,
				Says:   "another Repository has the same URL, and a URL belongs to one Repository: the first that claims it",
				Remedy: "keep one of them; target-namespace has no effect",
			}, m.name(), m.name()+" (as "+first.name()+")")
			continue
		}
		oldest[canonical] = m
	}
}
