// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
)

// A team of the policy that the Git service does not show is in a condition, until an event has
// seen it or the policy does not list it any more. A failed write delays no event.
func TestMissingTeamSetsTheCondition(t *testing.T) {
	t.Parallel()
	const gone = `GitHub shows no team "gone": remove it`
	listing := func(teams ...string) *pacv1alpha1.Settings {
		return &pacv1alpha1.Settings{Policy: &pacv1alpha1.Policy{PullRequest: teams, OkToTest: []string{"testers"}}}
	}
	repository := &pacv1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}}
	repository.Spec.Settings = listing("gone", "there")
	client := fake.NewSimpleClientset(repository)
	var refuse error
	writes := 0
	client.PrependReactor("update", "repositories", func(clienttesting.Action) (bool, runtime.Object, error) {
		writes++
		err := refuse
		if apierrors.IsConflict(refuse) {
			refuse = nil
		}
		return err != nil, nil, err
	})
	told := teams{conditions{client.PipelinesascodeV1alpha1(), "plumbline"}}
	step := func(why, status string, most int, settings *pacv1alpha1.Settings, asked map[string]string) {
		t.Helper()
		now, err := told.repositories.Repositories("team").Get(t.Context(), "app", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		now.Spec.Settings, writes = settings, 0
		told.tell(t.Context(), now, asked)
		now, err = told.repositories.Repositories("team").Get(t.Context(), "app", metav1.GetOptions{})
		got := ""
		if is := now.Status.GetCondition(pacv1alpha1.RepositoryPolicy); is != nil {
			got = string(is.Status) + " " + is.Reason
		}
		if err != nil || got != status || writes != most {
			t.Errorf("%s: %q after %d writes, want %q after %d: %v", why, got, writes, status, most, err)
		}
	}
	both, found, missing := listing("gone", "there"), "True TeamsFound", "False TeamNotFound"
	step("nothing is missing", "", 0, both, map[string]string{"there": ""})
	refuse = errors.New("down")
	step("it cannot be written", "", 1, both, map[string]string{"gone": gone})
	refuse = apierrors.NewConflict(schema.GroupResource{Resource: "repositories"}, "app", errors.New("newer"))
	step("one is missing, and somebody else has written", missing, 2, both, map[string]string{"gone": gone, "there": ""})
	step("it is missing still", missing, 0, both, map[string]string{"gone": gone})
	step("another one is there", missing, 0, both, map[string]string{"there": ""})
	step("no team is read", missing, 0, both, nil)
	step("it is there", found, 1, both, map[string]string{"gone": ""})
	step("and remains", found, 0, both, map[string]string{"gone": "", "there": ""})
	step("it is gone again", missing, 1, both, map[string]string{"gone": gone})
	step("it is not listed any more", found, 1, listing("there"), nil)
	step("and once more", missing, 1, both, map[string]string{"gone": gone})
	step("there is no policy any more", found, 1, nil, nil)
}
