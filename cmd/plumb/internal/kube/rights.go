// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// CheckRights returns an error that names the rights that this account lacks. Call it before the
// first change.
func (c *Cluster) CheckRights(ctx context.Context, rights []authorizationv1.ResourceAttributes) error {
	var missing []string
	for _, right := range rights {
		review, err := c.Kube.AuthorizationV1().SelfSubjectAccessReviews().
			Create(ctx, &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right},
			}, metav1.CreateOptions{})
		if err != nil {
			return Failed("reading the rights of this account", err)
		}
		if !review.Status.Allowed {
			missing = append(missing, NameRight(right.Verb, right.Resource, right.Group, right.Namespace))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf(
		"nothing was changed: this account lacks the rights to\n  %s\nask an administrator of the cluster for them",
		strings.Join(slices.Compact(missing), "\n  "),
	)
}

// Polling is how often something is read, and for how long.
type Polling struct{ Every, Timeout time.Duration }

// Until calls done until it returns true or the time is over. An API server that does not respond,
// or cannot for now, is called again; say then reports its error once.
func (p Polling) Until(
	ctx context.Context, say func(format string, args ...any), done wait.ConditionWithContextFunc,
) error {
	said := ""
	return wait.PollUntilContextTimeout(ctx, p.Every, p.Timeout, true, func(ctx context.Context) (bool, error) {
		ok, err := done(ctx)
		if ctx.Err() != nil || !Unavailable(err) {
			return ok, err
		}
		if err.Error() != said {
			said = err.Error()
			say("%s. Trying again ...", said)
		}
		return false, nil
	})
}
