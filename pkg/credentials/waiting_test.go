// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// A Secret is read once, however many events wait for it. Only events that were tried with another
// content wake.
func TestSecretIsReadOnceForAllItsEvents(t *testing.T) {
	t.Parallel()
	a, b := types.NamespacedName{Namespace: "ns", Name: "a"}, types.NamespacedName{Namespace: "ns", Name: "b"}
	w := newWaiting()
	for _, event := range []string{"1", "2", "3"} {
		w.add(event, map[types.NamespacedName]content{a: absent}, true, false)
	}
	w.add("4", map[types.NamespacedName]content{b: "old"}, true, false)
	w.add("5", nil, false, false)
	w.add("gone", map[types.NamespacedName]content{{Name: "gone"}: "x"}, true, false)
	names := w.secrets(func(event string) bool { return event != "gone" })
	slices.SortFunc(names, func(a, b types.NamespacedName) int {
		return len(a.Name) - len(b.Name) + int(a.Name[0]) - int(b.Name[0])
	})
	if diff := cmp.Diff([]types.NamespacedName{a, b}, names); diff != "" {
		t.Errorf("looks: %s", diff)
	}
	if woken := append(w.saw(a, absent), w.saw(b, "old")...); len(woken) != 0 {
		t.Errorf("nothing changed and %v woke", woken)
	}
	woken := w.saw(a, "new")
	slices.Sort(woken)
	if diff := cmp.Diff([]string{"1", "2", "3"}, woken); diff != "" {
		t.Error(diff)
	}
	for event, want := range map[string]bool{"1": true, "4": false, "5": false, "unknown": true} {
		if got := w.fixed(event, fault.ReasonCredentialsMissing); got != want {
			t.Errorf("event %s may go on: %v", event, got)
		}
	}
	if w.fixed("unknown", fault.ReasonForbidden) {
		t.Error("an event that waits for something else is tried before its time")
	}
	w.add("1", map[types.NamespacedName]content{a: "new"}, true, false)
	if w.fixed("1", fault.ReasonCredentialsRefused) || !w.fixed("2", fault.ReasonCredentialsMissing) {
		t.Error("an event that was tried is tried again, or one that was not is forgotten")
	}
}

// When the credentials of one event work again, the events with the same credentials are returned,
// and no others.
func TestRemovedEventReturnsOthersWithItsSecrets(t *testing.T) {
	t.Parallel()
	app, lab := types.NamespacedName{Name: "app"}, types.NamespacedName{Name: "lab"}
	w := newWaiting()
	w.add("first", map[types.NamespacedName]content{app: "x"}, true, false)
	w.add("same", map[types.NamespacedName]content{app: "x"}, true, false)
	w.add("other secret", map[types.NamespacedName]content{lab: "x"}, true, false)
	w.add("other reason", map[types.NamespacedName]content{app: "x"}, false, false)
	w.add("another reason", map[types.NamespacedName]content{app: "x"}, false, false)
	if others := w.remove("other reason"); len(others) != 0 {
		t.Errorf("what was not held by its credentials frees %v", others)
	}
	if diff := cmp.Diff([]string{"same"}, w.remove("first")); diff != "" {
		t.Error(diff)
	}
	if others := w.remove("first"); len(others) != 0 {
		t.Errorf("again: %v", others)
	}
}

// A step that was not tried is still retried if another step has read the Secret meanwhile.
func TestSkippedStepKeepsItsSecrets(t *testing.T) {
	t.Parallel()
	app := types.NamespacedName{Name: "app"}
	w := newWaiting()
	w.add("e", map[types.NamespacedName]content{app: "old"}, true, false)
	if again := w.add("e", map[types.NamespacedName]content{app: "new"}, true, true); !again ||
		!w.fixed("e", fault.ReasonCredentialsMissing) {
		t.Error("the step that waits for the Secret is not tried")
	}
	if again := w.add("e", map[types.NamespacedName]content{app: "new"}, true, true); again ||
		w.fixed("e", fault.ReasonCredentialsMissing) {
		t.Error("it is retried again and again")
	}
}

// A change of a Secret that the Repository does not name any more must not wake the event at every
// poll.
func TestUnnamedSecretWakesNothing(t *testing.T) {
	t.Parallel()
	before, now := types.NamespacedName{Name: "before"}, types.NamespacedName{Name: "now"}
	w := newWaiting()
	w.add("e", map[types.NamespacedName]content{before: "x"}, true, false)
	w.add("e", map[types.NamespacedName]content{now: "x"}, true, false)
	if woken := w.saw(before, "y"); len(woken) != 0 || w.fixed("e", fault.ReasonCredentialsRefused) {
		t.Errorf("%v woke; it may go on: %t", woken, w.fixed("e", fault.ReasonCredentialsRefused))
	}
	if names := w.secrets(func(string) bool { return true }); !slices.Equal(names, []types.NamespacedName{now}) {
		t.Errorf("looks at %v", names)
	}
}

func TestContentOf(t *testing.T) {
	t.Parallel()
	secret := func(data map[string]string, labels map[string]string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Data: map[string][]byte{}}
		for key, value := range data {
			s.Data[key] = []byte(value)
		}
		return s
	}
	base, _ := contentOf(secret(map[string]string{"a": "bc", "d": "e"}, nil), nil)
	if same, _ := contentOf(secret(map[string]string{"d": "e", "a": "bc"}, map[string]string{"x": "y"}),
		nil); same != base {
		t.Error("metadata counts")
	}
	for _, other := range []map[string]string{{"a": "b", "cd": "e"}, {"a": "bc", "d": ""}, {"a": "bc"}, nil} {
		if got, known := contentOf(secret(other, nil), nil); got == base || !known {
			t.Errorf("%v counts as the same content", other)
		}
	}
	resource := corev1.Resource("secrets")
	for name, test := range map[string]struct {
		err   error
		want  content
		known bool
	}{
		"not found": {apierrors.NewNotFound(resource, "x"), absent, true},
		"no right":  {apierrors.NewForbidden(resource, "x", errors.New("no")), forbidden, true},
		"an outage": {apierrors.NewServiceUnavailable("down"), "", false},
	} {
		if got, known := contentOf(nil, test.err); got != test.want || known != test.known {
			t.Errorf("%s: %q %v", name, got, known)
		}
	}
}
