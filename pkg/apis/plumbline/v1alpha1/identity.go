// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"
)

// ProjectIdentity is the Git service's numeric ids of a repository. They do not change when the
// repository is renamed or its name is reused.
type ProjectIdentity struct {
	// The id of the repository.
	ID int64 `json:"id"`
	// The id of the organization, user or group; 0 if the service does not say.
	// +optional
	OwnerID int64 `json:"ownerID,omitempty"`
}

// Identity returns the project's ids.
func (p *Project) Identity() ProjectIdentity { return ProjectIdentity{ID: p.ID, OwnerID: p.OwnerID} }

// Same reports whether both are the same repository with the same owner. An unknown owner matches
// every owner.
func (i ProjectIdentity) Same(other ProjectIdentity) bool {
	return i.ID == other.ID && (i.OwnerID == other.OwnerID || i.OwnerID == 0 || other.OwnerID == 0)
}

// String returns "<owner's id>/<repository's id>", which users write to confirm a repository.
func (i ProjectIdentity) String() string { return fmt.Sprintf("%d/%d", i.OwnerID, i.ID) }

// ParseIdentity parses the text of String. An owner's id of 0 matches every owner.
func ParseIdentity(text string) (ProjectIdentity, error) {
	owner, id, found := strings.Cut(strings.TrimSpace(text), "/")
	ownerID, err := strconv.ParseInt(owner, 10, 64)
	number, err2 := strconv.ParseInt(id, 10, 64)
	if !found || err != nil || err2 != nil || ownerID < 0 || number <= 0 {
		return ProjectIdentity{}, fmt.Errorf(
			"%q is not the id of an account, a slash and the id of a repository, like \"17/4711\"", text,
		)
	}
	return ProjectIdentity{ID: number, OwnerID: ownerID}, nil
}
