// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"
)

// ProjectIdentity is what stays of a repository at a Git service when names change hands: the
// service's numbers.
type ProjectIdentity struct {
	// ID is the repository's.
	ID int64 `json:"id"`
	// OwnerID is the organization's, user's or group's; 0 if the service did not tell.
	// +optional
	OwnerID int64 `json:"ownerID,omitempty"`
}

// Identity is the project's.
func (p *Project) Identity() ProjectIdentity { return ProjectIdentity{ID: p.ID, OwnerID: p.OwnerID} }

// Same reports whether both are one repository of one owner. An owner that is not known is no other
// one.
func (i ProjectIdentity) Same(other ProjectIdentity) bool {
	return i.ID == other.ID && (i.OwnerID == other.OwnerID || i.OwnerID == 0 || other.OwnerID == 0)
}

// String is "<owner's id>/<repository's id>", as people confirm it.
func (i ProjectIdentity) String() string { return fmt.Sprintf("%d/%d", i.OwnerID, i.ID) }

// ParseIdentity reads what String writes. The owner's id may be 0, which stands for every owner.
func ParseIdentity(text string) (ProjectIdentity, error) {
	owner, id, found := strings.Cut(strings.TrimSpace(text), "/")
	ownerID, err := strconv.ParseInt(owner, 10, 64)
	number, err2 := strconv.ParseInt(id, 10, 64)
	if !found || err != nil || err2 != nil || ownerID < 0 || number <= 0 {
		return ProjectIdentity{}, fmt.Errorf(
			"%q is not the id of an account, a slash and the id of a repository, like \"17/4711\"",
			text,
		)
	}
	return ProjectIdentity{ID: number, OwnerID: ownerID}, nil
}
