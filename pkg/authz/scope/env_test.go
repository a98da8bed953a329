// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	paclisters "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
)

// cluster has Repositories and their claims.
type cluster struct {
	*testing.T
	claims, repositories cache.Indexer
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	index := func() cache.Indexer {
		return cache.NewIndexer(
			cache.MetaNamespaceKeyFunc,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
		)
	}
	return &cluster{t, index(), index()}
}

// repository creates a Repository object.
func (c *cluster) repository(namespace, name, url string) *pacv1alpha1.Repository {
	c.Helper()
	r := &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)},
		Spec:       pacv1alpha1.RepositorySpec{URL: url},
	}
	if err := c.repositories.Add(r); err != nil {
		c.Fatal(err)
	}
	return r
}

// owned creates a Repository that owns its URL.
func (c *cluster) owned(
	namespace, name, url string,
	change ...func(*v1alpha1.RepositoryClaim),
) *pacv1alpha1.Repository {
	c.Helper()
	canonical, err := v1alpha1.CanonicalURL(url)
	if err != nil {
		c.Fatal(err)
	}
	held := &v1alpha1.RepositoryClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: v1alpha1.ClaimName(canonical)},
		Spec: v1alpha1.RepositoryClaimSpec{
			URL: canonical, Repository: v1alpha1.ClaimOwner{Namespace: namespace, Name: name},
		},
	}
	for _, edit := range change {
		edit(held)
	}
	if err := c.claims.Add(held); err != nil {
		c.Fatal(err)
	}
	return c.repository(namespace, name, url)
}

// bound binds a claim to the repository with this id.
func bound(id int64) func(*v1alpha1.RepositoryClaim) {
	return func(c *v1alpha1.RepositoryClaim) {
		owner := c.Spec.Repository
		c.Status.Bound = &v1alpha1.BoundProject{
			ProjectIdentity: v1alpha1.ProjectIdentity{OwnerID: 1, ID: id},
			RepositoryUID:   types.UID(owner.Namespace + "/" + owner.Name),
		}
	}
}

// proven is a claim whose newest event had the proof of ownership.
func proven(c *v1alpha1.RepositoryClaim) { c.Status.Proven = true }

// covered is the installation: all of the account acme.
func covered(context.Context) ([]v1alpha1.Project, error) {
	var all []v1alpha1.Project
	for i, name := range []string{"app", "lib", "Tasks", "secret", "tools-a", "tools-b"} {
		all = append(all, v1alpha1.Project{ID: int64(i + 1), Owner: "acme", Name: name, OwnerID: 1})
	}
	return all, nil
}

// others asks for the others of an event of acme/app in namespace team.
func (c *cluster) others(lists []string, data map[string]string, change ...func(*Request)) (string, string, error) {
	c.Helper()
	settings, err := config.New(data)
	if err != nil {
		c.Fatal(err)
	}
	repository := c.repository("team", "app", "https://github.com/acme/app")
	repository.Spec.Settings = &pacv1alpha1.Settings{GithubAppTokenScopeRepos: lists}
	q := Request{
		Event: &v1alpha1.GitEventSpec{
			InstallationID: 7,
			Project:        v1alpha1.Project{ID: 1, Owner: "acme", Name: "app", OwnerID: 1},
		},
		Repository: repository,
		Config:     settings,
		Covered:    covered,
	}
	for _, edit := range change {
		edit(&q)
	}
	r := Resolver{
		Claims:       listers.NewRepositoryClaimLister(c.claims).RepositoryClaims(system),
		Repositories: paclisters.NewRepositoryLister(c.repositories),
	}
	projects, skipped, err := r.Others(c.Context(), q)
	var names []string
	for _, p := range projects {
		names = append(names, fmt.Sprintf("%s=%d", p.Name, p.ID))
	}
	return strings.Join(names, " "), strings.Join(skipped, "; "), err
}
