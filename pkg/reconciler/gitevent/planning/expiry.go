// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// expiryNotice is how long before a token expires its Repository says so.
const expiryNotice = 7 * 24 * time.Hour

// expiry reports in the condition Token of Repositories that the token that they name expires soon.
type expiry struct{ conditions }

// tell updates the condition, and records one Kubernetes Event for each token that expires soon.
func (e expiry) tell(ctx context.Context, a *attempt.Attempt, repository *pacv1alpha1.Repository) {
	secret, at := a.Git.TokenExpires()
	if secret.Name == "" {
		return
	}
	soon := expiresSoon(secret, at, a.Clock.Now())
	if !tokenNews(repository, soon) {
		return
	}
	written := e.update(ctx, repository, pacv1alpha1.RepositoryToken, func(live *pacv1alpha1.Repository) bool {
		switch {
		case !tokenNews(live, soon):
			return false
		case soon == "":
			live.By(e.namespace).MarkTrue(pacv1alpha1.RepositoryToken, reasonTokenValid,
				"The Git service does not say that the token expires within seven days.")
		default:
			live.By(e.namespace).MarkFalse(pacv1alpha1.RepositoryToken, reasonTokenExpires, soon)
		}
		return true
	})
	if written && soon != "" {
		a.Waits.WarningEvent(reasonTokenExpires, soon)
	}
}

// expiresSoon returns the message about a token that expires soon, "" for any other.
func expiresSoon(secret types.NamespacedName, at, now time.Time) string {
	if at.IsZero() || at.Sub(now) >= expiryNotice {
		return ""
	}
	return fmt.Sprintf("The token in Secret %s expires on %s: put a new one there before that.",
		secret, at.UTC().Format("2 January 2006 at 15:04 MST"))
}

// tokenNews reports whether the condition must be written. It says nothing while there never was a
// problem.
func tokenNews(repository *pacv1alpha1.Repository, soon string) bool {
	is := repository.Status.GetCondition(pacv1alpha1.RepositoryToken)
	if soon == "" {
		return is != nil && is.IsFalse()
	}
	return is == nil || !is.IsFalse() || is.Message != soon
}
