// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"context"
	"fmt"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
)

// everywhere returns the Repositories of all namespaces.
func (e *env) everywhere() (all []*pacv1alpha1.Repository) {
	for _, object := range e.repos.List() {
		all = append(all, object.(*pacv1alpha1.Repository))
	}
	return all
}

func (e *env) missing() []redelivery.Delivery {
	e.Helper()
	l, _, err := e.source.store.load(context.Background())
	if err != nil {
		e.Fatal(err)
	}
	return l.Missed
}

func (e *env) wantRecorded(guids ...string) {
	e.Helper()
	for _, guid := range guids {
		if e.recorded[guid] == 0 {
			e.Errorf("%s is not recorded", guid)
		}
	}
}

// claim returns the claim of a Repository that serve has made.
func (e *env) claim(id int64) *v1alpha1.RepositoryClaim {
	e.Helper()
	found, exists, err := e.claims.GetByKey(system + "/" +
		v1alpha1.ClaimName(fmt.Sprint("https://github.com/acme/app-", id)))
	if err != nil || !exists {
		e.Fatal("no claim")
	}
	return found.(*v1alpha1.RepositoryClaim)
}

// unbind makes the number of a repository unknown.
func (e *env) unbind(id int64) {
	e.Helper()
	claim := e.claim(id).DeepCopy()
	claim.Status.Bound = nil
	if err := e.claims.Update(claim); err != nil {
		e.Fatal(err)
	}
}

// unclaim makes a Repository a new one.
func (e *env) unclaim(id int64) {
	e.Helper()
	if err := e.claims.Delete(e.claim(id)); err != nil {
		e.Fatal(err)
	}
}
