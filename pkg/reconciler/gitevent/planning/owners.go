// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"fmt"

	"github.com/plumbline-ci/plumbline/pkg/authz/owners"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// ReasonBadOwners is the reason of a warning about an OWNERS file that cannot be parsed. It grants
// no rights.
const ReasonBadOwners = "BadOwners"

// allAccounts stands for each account of a repository in which OWNERS names no account.
const allAccounts = ""

// Owner reports whether OWNERS or OWNERS_ALIASES on the default branch name the user (S25). It
// costs a call, and one for each of the files that was not read before. That a repository has no
// such file, or an invalid one, is cached for all of its untrusted users.
func (a *Access) Owner(ctx context.Context, user string) (bool, error) {
	if held, _ := a.denied("owner", allAccounts); held {
		return false, nil
	}
	return a.unlessDenied("owner", user, func() (bool, error) {
		if a.owners == nil {
			people, err := a.readOwners(ctx)
			if err != nil {
				return false, fmt.Errorf("reading who is in %s: %w", owners.File, err)
			}
			a.owners = &people
		}
		return a.owners.Has(user), nil
	})
}

// readOwners reads both files at one commit. A file that is invalid or too large names no account.
func (a *Access) readOwners(ctx context.Context) (owners.People, error) {
	files, err := a.RootFiles(ctx, owners.File, owners.AliasesFile)
	people := owners.People{}
	if err == nil {
		people, err = owners.Parse(files[owners.File], files[owners.AliasesFile])
		if err != nil {
			err = fault.Invalidf(ReasonBadOwners, "%w", err)
		}
	}
	if fault.Is(err, fault.Invalid) {
		a.Tell(ReasonBadOwners, fault.Of(err).Message+", on the default branch: it gives no rights until it is fixed")
		people, err = owners.People{}, nil
	}
	if err == nil && !people.Any() {
		a.deny("owner", allAccounts, nil)
	}
	return people, err
}
