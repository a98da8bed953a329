// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// Nobody has a Secret of a name that a client cannot even ask for: that is for whoever wrote it to
// mend, and no outage.
func TestSecretWithAnInvalidNameDoesNotExist(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New(`invalid resource name "ci/token": [may not contain '/']`)
	})
	s := r.begin("e", "app", "git.example")
	defer s.End(false, false)
	if _, err := s.Secret(t.Context(), "team", "ci/token"); !apierrors.IsNotFound(err) {
		t.Errorf("reading it is answered %v, want that it does not exist", err)
	}
}
