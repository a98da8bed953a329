// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/delivery"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
)

const (
	// coveredFor is how long the list of an installation's repositories is used.
	coveredFor = 5 * time.Minute
	// maxCovered limits the pages of that list: 10,000 repositories.
	maxCovered = 100
	// listing says in messages what is done.
	listing = "listing the repositories of the App's installation"
)

// covered caches the repositories of one installation.
type covered struct {
	mu   sync.Mutex
	at   time.Time
	list []v1alpha1.Project
}

func (c *covered) get(now time.Time) (list []v1alpha1.Project, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list, !c.at.IsZero() && now.Sub(c.at).Abs() < coveredFor
}

func (c *covered) set(list []v1alpha1.Project, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list, c.at = list, now
}

func (c *covered) forget() { c.set(nil, time.Time{}) }

// Covered lists the repositories of the App's installation. Only a token of the whole installation
// can: this one reads metadata alone, stays in this call, and is revoked at its end.
func (r *repository) Covered(ctx context.Context) ([]v1alpha1.Project, error) {
	minter := r.runs.minter
	if list, found := r.covered.get(minter.now()); found {
		return list, nil
	}
	token, err := r.runs.mint(ctx, map[string]string{"metadata": "read"}, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.runs.revoke(context.WithoutCancel(ctx), token.Value) }() // it expires by itself
	list, err := r.repositories(ctx, token)
	if f := fault.Of(err); f != nil && f.Reason == fault.ReasonCredentialsRefused {
		return nil, fault.Transientf(provider.ReasonBadAnswer, "%s: GitHub refuses a token that it has just issued", listing)
	}
	if err == nil {
		r.covered.set(list, minter.now())
	}
	return list, err
}

// repositories reads all pages with a token of the installation
// (https://docs.github.com/rest/apps/installations#list-repositories-accessible-to-the-app-installation).
func (r *repository) repositories(ctx context.Context, token provider.Token) ([]v1alpha1.Project, error) {
	client := r.as(token)
	var all []v1alpha1.Project
	for page := 1; page <= maxCovered; page++ {
		req, err := client.NewRequest(http.MethodGet,
			fmt.Sprintf("installation/repositories?per_page=%d&page=%d", perPage, page), nil)
		if err != nil {
			return nil, limits.Failed(listing, err)
		}
		var part struct { // the library's type keeps a hundred fields of each
			Repositories []struct {
				ID    int64
				Name  string
				Owner struct {
					ID    int64
					Login string
				}
			}
		}
		resp, err := client.Do(ctx, req, &part)
		if err != nil {
			return nil, limits.Failed(listing, err)
		}
		for _, p := range part.Repositories {
			if p.ID <= 0 || !delivery.ValidName(p.Owner.Login, p.Name) {
				return nil, noAnswer(listing)
			}
			all = append(all, v1alpha1.Project{
				ID: p.ID, Owner: p.Owner.Login, Name: p.Name, OwnerID: p.Owner.ID, URL: r.pageOf(p.Owner.Login, p.Name),
			})
		}
		if resp.NextPage == 0 {
			break
		}
	}
	return all, nil
}

func (r *repository) pageOf(owner, name string) string {
	page, err := url.JoinPath(r.web, owner, name)
	if err != nil { // connect has parsed it
		return ""
	}
	return page
}

// among returns the other repository that an address is in, as its own events see it. It returns
// nil if the address is in none.
func (r *repository) among(at address, others []v1alpha1.Project) (*repository, error) {
	for _, other := range others {
		if strings.EqualFold(at.owner, other.Owner) && strings.EqualFold(at.name, other.Name) {
			return r.open(other)
		}
	}
	return nil, nil
}
