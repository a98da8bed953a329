// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

func TestTokenThatExpiresSoonIsNews(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	secret := types.NamespacedName{Namespace: "team", Name: "github"}
	const message = "The token in Secret team/github expires on 5 December 2026 at 12:00 UTC: put a new one there before that."
	for name, test := range map[string]struct {
		expires time.Time
		want    string
	}{
		"GitHub does not say":  {time.Time{}, ""},
		"in seven days":        {now.Add(expiryNotice), ""},
		"in four days":         {now.Add(4 * 24 * time.Hour), message},
		"in another time zone": {now.Add(4 * 24 * time.Hour).In(time.FixedZone("", 3600)), message},
	} {
		if got := expiresSoon(secret, test.expires, now); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	repository := &pacv1alpha1.Repository{}
	by := repository.By("plumbline")
	for _, step := range []struct {
		soon string
		news bool
		mark func()
	}{
		{"", false, nil},
		{message, true, func() { by.MarkFalse(pacv1alpha1.RepositoryToken, reasonTokenExpires, message) }},
		{message, false, nil},
		{message + " ", true, nil},
		{"", true, func() { by.MarkTrue(pacv1alpha1.RepositoryToken, reasonTokenValid, "") }},
		{"", false, nil},
		{message, true, nil},
	} {
		if got := tokenNews(repository, step.soon); got != step.news {
			t.Errorf("%q: news %v with %+v", step.soon, got, repository.Status.GetCondition(pacv1alpha1.RepositoryToken))
		}
		if step.mark != nil {
			step.mark()
		}
	}
}
