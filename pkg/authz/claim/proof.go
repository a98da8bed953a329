// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// ProofFile on a repository's default branch names the one namespace that may serve the
	// repository.
	ProofFile = ".tekton/.plumbline-namespace"
	// maxProof is more than any namespace's name and the line's end take, in bytes.
	maxProof = 1 << 10
	// Turn is how long a namespace has a URL that other namespaces want as well, if no event has
	// proven it: as long as it takes somebody to push, or to deliver an event again, while they are
	// at it.
	Turn = time.Hour
	// reasonBroken is that of events that wait for the setting to be mended.
	reasonBroken = "BadURLOwners"
)

// Files reads a repository.
type Files = interface {
	DefaultBranch(ctx context.Context) (sha string, err error)
	File(ctx context.Context, sha, path string) ([]byte, error)
}

// prove reports whether a namespace may have a URL, by the administrator's list or by the file.
// listed is true if the list has the URL, so that the file does not matter. Without the proof the
// error is an Ignored fault; any other says that it is not known.
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
	if err != nil && !fault.Is(err, fault.Invalid) { // Invalid: there is no such file, or it is too large
		return false, fmt.Errorf("looking for the proof of ownership: %w", err)
	}
	if err != nil || len(data) > maxProof || strings.TrimSpace(string(data)) != namespace {
		return false, fault.Ignoredf(v1alpha1.ReasonNotProven, "%s", NotProven(url, namespace))
	}
	return false, nil
}

// Broken says what an administrator has to mend.
func Broken(owners config.Owners) string {
	return "the administrator's setting url-owners cannot be read (" + owners.Broken + "), so that nobody's ownership of a URL can be proven: no event starts anything until it is mended"
}

// NotListed tells whoever has a Repository of a URL that is listed for others. It does not say for
// whom.
func NotListed(url string) string {
	return url + " is listed for another namespace by the administrator (url-owners), so its events are not served here"
}

// NotProven says what a Repository lacks.
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

// Next returns whose turn it is to have a URL that was claimed and never proven: rivals are the
// Repositories that name it. Each namespace gets one turn after the other, in the order of their
// names, however many Repositories it has: that of the first by name. ok is false if no other
// namespace wants the URL.
func Next(owner types.NamespacedName, rivals []types.NamespacedName) (next types.NamespacedName, ok bool) {
	others := slices.DeleteFunc(
		slices.Clone(rivals),
		func(r types.NamespacedName) bool { return r.Namespace == owner.Namespace },
	)
	if len(others) == 0 {
		return types.NamespacedName{}, false
	}
	slices.SortFunc(others, func(a, b types.NamespacedName) int {
		if a.Namespace != b.Namespace {
			return strings.Compare(a.Namespace, b.Namespace)
		}
		return strings.Compare(a.Name, b.Name)
	})
	after := slices.IndexFunc(others, func(r types.NamespacedName) bool { return r.Namespace > owner.Namespace })
	return others[max(after, 0)], true
}
