// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"cmp"
	"fmt"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// identify compares the repository of an event with the one that its URL stands for. It returns the
// new status of the claim, and an Ignored fault if they differ.
//
// The Repository's annotation says which repository the URL stands for; without it, the claim does;
// without a claim, the first event binds it. A Repository that was created again is not bound by
// the old claim: its creator decides what it serves.
func identify(
	repository *pacv1alpha1.Repository, status v1alpha1.RepositoryClaimStatus, seen v1alpha1.ProjectIdentity,
) (v1alpha1.RepositoryClaimStatus, error) {
	bound := boundBy(repository, status.Bound)
	expected, invalid := Expected(repository, status)
	entry := &v1alpha1.BoundProject{ProjectIdentity: seen, RepositoryUID: repository.UID}
	if invalid != nil || expected != nil && !expected.Same(seen) {
		status.Refused = entry
		return status, fault.Ignoredf(v1alpha1.ReasonAnotherRepository, "%s", refusal(repository, status))
	}
	if bound != nil && bound.Same(seen) {
		entry.OwnerID = cmp.Or(seen.OwnerID, bound.OwnerID)
	} else {
		status.Proven = false // it was a proof of another repository
	}
	status.Bound, status.Refused = entry, nil
	return status, nil
}

// Expected returns the repository that the URL of a Repository stands for, nil while the next event
// decides that. The error says why the Repository's annotation cannot be read.
func Expected(
	repository *pacv1alpha1.Repository, status v1alpha1.RepositoryClaimStatus,
) (*v1alpha1.ProjectIdentity, error) {
	confirmed, invalid := confirmedBy(repository)
	if confirmed != nil || invalid != nil {
		return confirmed, invalid
	}
	return boundBy(repository, status.Bound), nil
}

// Owned returns which repository at the Git service a Repository owns by the claim of its URL, nil
// while no event has said which. owned is false if it owns none. A proof by the file is one of the
// repository that the file was read from.
func Owned(
	repository *pacv1alpha1.Repository, held *v1alpha1.RepositoryClaim, owners config.Owners,
) (id *v1alpha1.ProjectIdentity, owned bool) {
	expected, invalid := Expected(repository, held.Status)
	if invalid != nil || !owns(held, repository) || held.Status.ReleasedAt != nil ||
		Denied(repository, held, owners) != nil {
		return nil, false
	}
	if !needsFile(held.Spec.URL, owners) {
		return expected, true
	}
	proven := boundBy(repository, held.Status.Bound)
	return proven, proven != nil && expected.Same(*proven)
}

// boundBy returns the ids that a Repository is bound to, nil if it is not bound.
func boundBy(repository *pacv1alpha1.Repository, entry *v1alpha1.BoundProject) *v1alpha1.ProjectIdentity {
	if entry == nil || entry.RepositoryUID != repository.UID {
		return nil
	}
	return &entry.ProjectIdentity
}

// confirmedBy returns the ids in the annotation of a Repository, nil if it has none.
func confirmedBy(repository *pacv1alpha1.Repository) (*v1alpha1.ProjectIdentity, error) {
	text, found := repository.Annotations[plumbline.RepositoryIDAnnotation]
	if !found {
		return nil, nil
	}
	confirmed, err := v1alpha1.ParseIdentity(text)
	if err != nil {
		return nil, err
	}
	return &confirmed, nil
}

// Refusal returns why the newest event of a Repository was not served, "" if it was served or has
// been confirmed since.
func Refusal(repository *pacv1alpha1.Repository, status v1alpha1.RepositoryClaimStatus) string {
	refused := boundBy(repository, status.Refused)
	if refused == nil {
		return ""
	}
	if confirmed, invalid := confirmedBy(repository); invalid == nil && confirmed != nil && confirmed.Same(*refused) {
		return "" // the next event binds it
	}
	return refusal(repository, status)
}

// refusal returns a message that names both repositories, and how to confirm the one that was
// refused.
func refusal(repository *pacv1alpha1.Repository, status v1alpha1.RepositoryClaimStatus) string {
	was := "nothing that can be read"
	if confirmed, invalid := confirmedBy(repository); invalid != nil {
		was = fmt.Sprintf("what its annotation %s says, which cannot be read: %s", plumbline.RepositoryIDAnnotation, invalid)
	} else if confirmed != nil {
		was = fmt.Sprintf("%s, as its annotation %s says", confirmed, plumbline.RepositoryIDAnnotation)
	} else if bound := boundBy(repository, status.Bound); bound != nil {
		was = bound.String()
	}
	return fmt.Sprintf(
		"The repository at %s has the id %s (account/repository) now, and Repository %s/%s was set up for %s. It was deleted and created again, "+
			"or another user has taken its name. Its events start nothing until you confirm it. Then deliver the events again: "+
			"kubectl annotate --overwrite -n %s repositories.pipelinesascode.tekton.dev %s %s=%s",
		repository.Spec.URL,
		status.Refused,
		repository.Namespace,
		repository.Name,
		was,
		repository.Namespace,
		repository.Name,
		plumbline.RepositoryIDAnnotation,
		status.Refused,
	)
}
