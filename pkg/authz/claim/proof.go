// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// ProofFile is the file on a repository's default branch that names the one namespace that may
	// serve the repository.
	ProofFile = ".tekton/.plumbline-namespace"
	// maxProof is the maximum size of the file in bytes: more than any namespace's name and a line
	// end.
	maxProof = 1 << 10
	// HandoverAfter is how long a namespace keeps an unproven URL that other namespaces want too.
	// In that time a user can push, or redeliver an event, to prove it.
	HandoverAfter = time.Hour
	// reasonBroken is the reason of events that wait until the setting is fixed.
	reasonBroken = "BadURLOwners"
)

// Files reads a repository.
type Files = interface {
	DefaultBranch(ctx context.Context) (sha string, err error)
	File(ctx context.Context, sha, path string) ([]byte, error)
}

// prove checks whether a namespace may use a URL, by the administrator's list or by the file.
// listed is true if the list has the URL; then the file does not matter. Without the proof the
// error is an Ignored fault; any other error means that it is not known.
func prove(ctx context.Context, owners config.Owners, url, namespace string, files Files) (listed bool, err error) {
	if owners.Broken != "" {
		return false, fault.Operatorf(reasonBroken, "%s", Broken(owners))
	}
	if namespaces := owners.Listed(url); len(namespaces) > 0 {
		if slices.Contains(namespaces, namespace) {
			return true, nil
		}
		return true, fault.Ignoredf(v1alpha1.ReasonNotProven, "%s", NotListed(url))
	}
	sha, err := files.DefaultBranch(ctx)
	if err != nil {
		return false, fmt.Errorf("looking for the proof of ownership: %w", err)
	}
	data, err := files.File(ctx, sha, ProofFile)
	if err != nil && !fault.Is(err, fault.Invalid) { // Invalid: the file does not exist, or is too large
		return false, fmt.Errorf("looking for the proof of ownership: %w", err)
	}
	if err != nil || len(data) > maxProof || strings.TrimSpace(string(data)) != namespace {
		return false, fault.Ignoredf(v1alpha1.ReasonNotProven, "%s", NotProven(url, namespace))
	}
	return false, nil
}

// Denied returns why the events of a Repository are not served although it has a claim, as far as
// its newest event shows; nil if they are.
func Denied(repository *pacv1alpha1.Repository, held *v1alpha1.RepositoryClaim, owners config.Owners) *fault.Error {
	namespace, url, refusal := repository.Namespace, held.Spec.URL, Refusal(repository, held.Status)
	switch {
	case refusal != "":
		return fault.Ignoredf(v1alpha1.ReasonAnotherRepository, "%s", refusal)
	case owners.Broken != "":
		return fault.Operatorf(reasonBroken, "%s", Broken(owners))
	case owners.Bar(url, namespace):
		return fault.Ignoredf(v1alpha1.ReasonNotProven, "%s", NotListed(url))
	case needsFile(url, owners) && !held.Status.Proven:
		return fault.Ignoredf(v1alpha1.ReasonNotProven, "%s", NotProven(url, namespace))
	}
	return nil
}

// needsFile reports whether only the file proves that a namespace may use a URL.
func needsFile(url string, owners config.Owners) bool {
	return owners.Asked && len(owners.Listed(url)) == 0
}

// Broken returns what an administrator has to fix.
func Broken(owners config.Owners) string {
	return "the administrator's setting url-owners cannot be read (" + owners.Broken + "), so no ownership of a URL can be proven: no event starts anything until it is fixed"
}

// NotListed returns the message for a Repository whose URL is listed for other namespaces. It does
// not say for which.
func NotListed(url string) string {
	return url + " is listed for another namespace by the administrator (url-owners), so its events are not served here"
}

// NotProven returns what a Repository must do to prove that it may use the URL.
func NotProven(url, namespace string) string {
	return fmt.Sprintf(
		"this cluster asks for a proof that namespace %s may serve %s, and none was found: add the file %s with the text %q to the default branch, "+
			"or ask the administrator to list the URL (url-owners). Then deliver the events again",
		namespace,
		url,
		ProofFile,
		namespace,
	)
}

// NextOwner returns the Repository that gets an unproven URL next; rivals are the Repositories with
// that URL. The namespaces take turns in the order of their names. A namespace with several
// Repositories gets one turn, for the first by name. ok is false if no other namespace wants the
// URL.
func NextOwner(owner types.NamespacedName, rivals []types.NamespacedName) (next types.NamespacedName, ok bool) {
	others := slices.DeleteFunc(slices.Clone(rivals),
		func(r types.NamespacedName) bool { return r.Namespace == owner.Namespace })
	if len(others) == 0 {
		return types.NamespacedName{}, false
	}
	slices.SortFunc(others, func(a, b types.NamespacedName) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	after := slices.IndexFunc(others, func(r types.NamespacedName) bool { return r.Namespace > owner.Namespace })
	return others[max(after, 0)], true
}
