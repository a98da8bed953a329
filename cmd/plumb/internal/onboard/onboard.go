// SPDX-License-Identifier: Apache-2.0

// Package onboard makes a Git repository known to Plumbline: its Repository, and, unless a GitHub
// App serves it, its Secret and its webhook.
package onboard

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path"
	"reflect"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab"
)

// Repository is a Repository to create.
type Repository struct {
	Namespace string
	// Name is optional: the default is the last part of the URL's path.
	Name, URL string
	// GitLab is true for a project of a GitLab, whose server is GitLabURL if it is not at the root
	// of the URL's host.
	GitLab    bool
	GitLabURL string
	// Token is that of the Git service; if it is empty, that of the global Repository is used, or
	// the GitHub App. Without a WebhookSecret one is generated.
	Token, WebhookSecret string
}

// Check returns an error if the URL or the name cannot be those of a Repository.
func (r *Repository) Check() error {
	canonical, err := v1alpha1.CanonicalURL(r.URL)
	if err != nil {
		return fmt.Errorf("--url: %w: give the address of the repository's page", err)
	}
	if u, err := url.Parse(r.URL); err != nil || u.User != nil { // everybody who reads the Repository would see it
		return errors.New("--url: it has a user or password: give the address of the repository's page, " +
			"and a token with --token-file")
	}
	r.Name = cmp.Or(r.Name, nameOf(canonical))
	if r.Name == "" {
		return errors.New("no name of a Repository can be made of the URL: give one as an argument")
	}
	return nil
}

var notInName = regexp.MustCompile(`[^a-z0-9.]+`)

// nameOf returns the name of a Repository with this URL.
func nameOf(canonical string) string {
	return strings.Trim(notInName.ReplaceAllString(path.Base(canonical), "-"), "-.")
}

// Create creates the Secret and the Repository. What exists already stays, if it is the same. say
// reports each step.
func (r *Repository) Create(ctx context.Context, c *kube.Cluster, say func(format string, args ...any)) error {
	if err := r.Check(); err != nil {
		return err
	}
	if err := r.unique(ctx, c); err != nil {
		return err
	}
	object := r.object()
	if r.Token != "" {
		if _, err := projectOf(object, r.Token); err != nil {
			return err
		}
		role, err := verify(ctx, object, r.Token)
		if err != nil {
			return err
		}
		say("The Git service accepts the token: %s", role)
		if err := secretOf(object).create(ctx, c, r.Token, r.WebhookSecret, say); err != nil {
			return err
		}
	}
	return r.createObject(ctx, c, object, say)
}

func (r *Repository) createObject(
	ctx context.Context, c *kube.Cluster, object *pacv1alpha1.Repository, say func(string, ...any),
) error {
	what := fmt.Sprintf("Repository %s/%s", r.Namespace, r.Name)
	repositories := c.Own.PipelinesascodeV1alpha1().Repositories(r.Namespace)
	_, err := repositories.Create(ctx, object, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		if err == nil {
			say("%s was created", what)
			return nil
		}
		return kube.Failed("creating "+what, err)
	}
	known, err := repositories.Get(ctx, r.Name, metav1.GetOptions{})
	if err != nil {
		return kube.Failed("reading "+what, err)
	}
	if !v1alpha1.SameURL(known.Spec.URL, object.Spec.URL) ||
		!reflect.DeepEqual(known.Spec.GitProvider, object.Spec.GitProvider) {
		return fmt.Errorf("%s exists with another url or git_provider: choose another name, or change it with kubectl edit",
			what)
	}
	say("%s exists already and stays", what)
	return nil
}

// unique returns an error if another Repository has the URL. Users who may not list those of other
// namespaces learn it from the condition of their own.
func (r *Repository) unique(ctx context.Context, c *kube.Cluster) error {
	list, err := c.Own.PipelinesascodeV1alpha1().Repositories(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return nil
	}
	if apierrors.IsNotFound(err) {
		return errors.New(
			"the cluster does not know the kind Repository: install Plumbline first, or check with plumb doctor",
		)
	}
	if err != nil {
		return kube.Failed("listing the Repositories", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		same := other.Namespace == r.Namespace && other.Name == r.Name
		if !same && v1alpha1.SameURL(other.Spec.URL, r.URL) {
			return fmt.Errorf("the URL is that of Repository %s/%s already, and a URL is served once: delete that one first",
				other.Namespace, other.Name)
		}
	}
	return nil
}

// object returns the Repository.
func (r *Repository) object() *pacv1alpha1.Repository {
	object := &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name},
		Spec:       pacv1alpha1.RepositorySpec{URL: r.URL},
	}
	service := github.Name
	switch {
	case r.GitLab:
		service = gitlab.Name
	case r.Token == "": // the App serves it
		return object
	}
	object.Spec.GitProvider = &pacv1alpha1.GitProvider{Type: service, URL: r.GitLabURL}
	if r.Token != "" {
		secret := pacv1alpha1.Secret{Name: r.Name + "-" + service}
		object.Spec.GitProvider.Secret, object.Spec.GitProvider.WebhookSecret = &secret, secret.DeepCopy()
	}
	return object
}

// random returns a secret token for a webhook.
func random() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
