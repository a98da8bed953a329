// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
)

// The keys of Secrets that a Repository need not name.
const (
	defaultTokenKey   = "provider.token"
	defaultWebhookKey = "webhook.secret"
)

// SecretKey names one value of a Secret.
type SecretKey struct{ Namespace, Name, Key string }

// Service says where a Repository's Git service is reached, and with which credentials, without a
// GitHub App.
type Service struct {
	// URL is the service's base URL as configured; empty for the service of RepositoryURL.
	URL string
	// RepositoryURL is the URL of the Repository that names the token. The global Repository may
	// have none. A Repository that only uses another namespace's token never decides where that
	// token is sent.
	RepositoryURL string
	// User goes with the token; it may be empty.
	User string
	// Token and Webhook say where the API's token and the webhook's secret are stored. Name is
	// empty if the Repository names none.
	Token, Webhook SecretKey
}

// HasWebhook reports whether the Repository names a token and a webhook secret. Then its webhook is
// served, and no App.
func (s Service) HasWebhook() bool { return s.Token.Name != "" && s.Webhook.Name != "" }

// OnGitHub reports whether the Repository says that it is on GitHub, or its URL does.
func (r *Repository) OnGitHub() bool {
	if r.Spec.GitProvider != nil && r.Spec.GitProvider.Type != "" {
		return r.Spec.GitProvider.Type == "github"
	}
	u, err := url.Parse(r.Spec.URL)
	return err == nil && strings.EqualFold(u.Hostname(), "github.com")
}

// CommentsOff reports whether results on GitLab are not written as comments. The Repository's own
// settings come before those of the global one, which may be nil.
func CommentsOff(own, global *Repository) bool {
	if global != nil {
		own = &Repository{Spec: *own.Spec.WithGlobal(&global.Spec)}
	}
	return own.CommentStrategy("gitlab") == CommentsDisabled
}

// CommentStrategy returns how comments are used at a Git service.
func (r *Repository) CommentStrategy(provider string) string {
	settings := r.Spec.Settings
	switch {
	case settings == nil:
	case provider == "gitlab" && settings.Gitlab != nil:
		return settings.Gitlab.CommentStrategy
	case provider == "github" && settings.Github != nil:
		return settings.Github.CommentStrategy
	}
	return ""
}

// ServiceOf returns the service of a Repository, completed by the global Repository, which may be
// nil. Secrets are read from the namespace of the Repository that names the token: without a
// git_provider.secret of its own, a Repository uses both secrets of the global one. The error says
// what the Repository's owner must change.
func ServiceOf(own, global *Repository) (Service, error) {
	if own.Spec.GitProvider == nil {
		return Service{}, nil
	}
	merged, source := own.Spec.GitProvider, own
	if global != nil {
		merged = own.Spec.WithGlobal(&global.Spec).GitProvider
		if own.Spec.GitProvider.Secret == nil && merged.Secret != nil {
			source = global
		}
	}
	if source != own {
		named := source.Spec.GitProvider
		if own.Spec.GitProvider.URL != "" && !sameEndpoint(own.Spec.GitProvider.URL, named.URL) {
			return Service{}, fmt.Errorf(
				"git_provider.url is %q, and the token is that of the global Repository %s/%s, which is for %q: "+
					"a token must not be sent where another namespace says; name a git_provider.secret, or remove the url",
				printable(own.Spec.GitProvider.URL),
				source.Namespace,
				source.Name,
				printable(named.URL),
			)
		}
		merged.URL, merged.WebhookSecret = named.URL, named.WebhookSecret
	}
	return Service{
		URL:           merged.URL,
		RepositoryURL: source.Spec.URL,
		User:          merged.User,
		Token:         keyOf(merged.Secret, source.Namespace, defaultTokenKey),
		Webhook:       keyOf(merged.WebhookSecret, source.Namespace, defaultWebhookKey),
	}, nil
}

func keyOf(secret *Secret, namespace, key string) SecretKey {
	if secret == nil || secret.Name == "" {
		return SecretKey{}
	}
	return SecretKey{Namespace: namespace, Name: secret.Name, Key: cmp.Or(secret.Key, key)}
}

// printable returns a URL without its password, or "" if it cannot be parsed: then it may contain
// one.
func printable(raw string) string {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Host == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// sameEndpoint reports whether two base URLs are of the same API.
func sameEndpoint(a, b string) bool {
	endpoint := func(raw string) string {
		u, err := url.Parse(strings.ToLower(strings.TrimSpace(raw)))
		if err != nil || u.Host == "" {
			return raw
		}
		path := strings.TrimRight(u.Path, "/")
		path = strings.TrimSuffix(strings.TrimSuffix(path, "/api/v4"), "/api/v3")
		port := u.Port()
		if port == "" {
			port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
		}
		return u.Scheme + "://" + strings.TrimSuffix(u.Hostname(), ".") + ":" + port + path
	}
	return endpoint(a) == endpoint(b)
}
