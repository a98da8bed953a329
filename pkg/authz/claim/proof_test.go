// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

func TestProof(t *testing.T) {
	down := fault.Transientf("Unavailable", "502")
	for name, c := range map[string]struct {
		owners string
		files  files
		before bool
		class  fault.Class // of the error; 0 and proven: none
		denied string
		proven bool
	}{
		"no proof is required": {"", files{}, false, 0, "", false},
		"no file":              {"{}", files{}, false, fault.Ignored, v1alpha1.ReasonNotProven, false},
		"no file any more":     {"{}", files{}, true, fault.Ignored, v1alpha1.ReasonNotProven, false},
		"the file":             {"{}", files{proof: " team\n"}, false, 0, "", true},
		"the file of another": {
			"{}", files{proof: "teams"}, false, fault.Ignored, v1alpha1.ReasonNotProven, false,
		},
		"two lines": {
			"{}", files{proof: "team\nother"}, false, fault.Ignored, v1alpha1.ReasonNotProven, false,
		},
		"a file that is too large": {
			"{}", files{proof: "team" + strings.Repeat(" ", maxProof)}, false, fault.Ignored, v1alpha1.ReasonNotProven, false,
		},
		"a file that cannot be read": {"{}", files{err: down}, false, fault.Transient, "Unavailable", false},
		"the same after a proof":     {"{}", files{err: down}, true, fault.Transient, "Unavailable", true},
		"listed":                     {"team: ['https://git.example/acme/*']", files{err: down}, false, 0, "", false},
		"listed for another, and a file": {
			"other: ['https://git.example/acme/*']", files{proof: "team"}, false, fault.Ignored, v1alpha1.ReasonNotProven, false,
		},
		"other URLs are listed":  {"other: ['https://git.example/x/*']", files{proof: "team"}, false, 0, "", true},
		"a setting that is none": {"other", files{proof: "team"}, false, fault.Operator, reasonBroken, false},
	} {
		t.Run(name, func(t *testing.T) {
			status := v1alpha1.RepositoryClaimStatus{Bound: bound(ours, "1"), Proven: c.before}
			w := newEnv(t, claim(status), claim(status), repository("1", ""))
			w.files = &c.files
			err := w.serves(ours, "1", c.owners)
			if c.denied == "" && err != nil || c.denied != "" && (!fault.Is(err, c.class) || fault.Of(err).Reason != c.denied) {
				t.Errorf("%v, want %q", err, c.denied)
			}
			if got := w.status().Proven; got != c.proven {
				t.Errorf("proven: %t", got)
			}
		})
	}
}

// The files of another repository at the URL are not even read.
func TestProofIsOnlyOfBoundRepository(t *testing.T) {
	status := v1alpha1.RepositoryClaimStatus{Bound: bound(ours, "1")}
	w := newEnv(t, claim(status), claim(status), repository("1", ""))
	w.files.proof = "team"
	if err := w.serves(theirs, "1", "{}"); !fault.Is(err, fault.Ignored) || w.files.branches != 0 || w.status().Proven {
		t.Errorf("%v; the file was read %d times, proven: %t", err, w.files.branches, w.status().Proven)
	}
}

func TestNextOwnerRotatesNamespaces(t *testing.T) {
	at := func(text string) types.NamespacedName {
		namespace, name, _ := strings.Cut(text, "/")
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	rivals := []types.NamespacedName{at("c/app"), at("b/z"), at("b/y"), at("a/app"), at("b/x")}
	for holder, want := range map[string]string{"a/app": "b/x", "b/x": "c/app", "b/z": "c/app", "c/app": "a/app",
		"d/gone": "a/app"} {
		if got, ok := NextOwner(at(holder), rivals); !ok || got != at(want) {
			t.Errorf("after %s comes %s, want %s", holder, got, want)
		}
	}
	if got, ok := NextOwner(at("b/x"), []types.NamespacedName{at("b/x"), at("b/y")}); ok {
		t.Errorf("a namespace takes from itself: %s", got)
	}
}

// A proof ends the wait for a handover.
func TestProofEndsHandover(t *testing.T) {
	since := metav1.Now().Rfc3339Copy()
	status := v1alpha1.RepositoryClaimStatus{Bound: bound(ours, "1"), UnprovenSince: &since}
	w := newEnv(t, claim(status), claim(status), repository("1", ""))
	if err := w.serves(ours, "1", "{}"); !fault.Is(err, fault.Ignored) || w.status().UnprovenSince == nil {
		t.Errorf("without a proof: %v, %+v", err, w.status())
	}
	w.files.proof = "team"
	if err := w.serves(ours, "1", "{}"); err != nil || !w.status().Proven || w.status().UnprovenSince != nil {
		t.Errorf("with a proof: %v, %+v", err, w.status())
	}
}
