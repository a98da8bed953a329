// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const appURL = "https://git.example/acme/app"

var (
	ours    = v1alpha1.ProjectIdentity{ID: 41, OwnerID: 7}
	theirs  = v1alpha1.ProjectIdentity{ID: 43, OwnerID: 9}
	ownerly = v1alpha1.ProjectIdentity{ID: 41, OwnerID: 9} // ours under another account
)

// repository returns a Repository with the annotation, unless it is "".
func repository(uid types.UID, annotation string) *pacv1alpha1.Repository {
	r := &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: uid},
		Spec:       pacv1alpha1.RepositorySpec{URL: appURL},
	}
	if annotation != "" {
		r.Annotations = map[string]string{plumbline.RepositoryIDAnnotation: annotation}
	}
	return r
}

func bound(to v1alpha1.ProjectIdentity, uid types.UID) *v1alpha1.BoundProject {
	return &v1alpha1.BoundProject{ProjectIdentity: to, RepositoryUID: uid}
}

func TestIdentify(t *testing.T) {
	type status = v1alpha1.RepositoryClaimStatus
	for name, c := range map[string]struct {
		annotation string
		before     status
		seen       v1alpha1.ProjectIdentity
		want       status
		says       []string // of a refusal
	}{
		"the first event binds": {"", status{}, ours, status{Bound: bound(ours, "1")}, nil},
		"what is bound is served": {
			"", status{Bound: bound(ours, "1"), Proven: true}, ours, status{Bound: bound(ours, "1"), Proven: true}, nil,
		},
		"another repository is not": {"", status{Bound: bound(ours, "1")}, theirs,
			status{Bound: bound(ours, "1"), Refused: bound(theirs, "1")}, []string{"7/41", "9/43", "repository-id=9/43"}},
		"nor is another account": {"", status{Bound: bound(ours, "1")}, ownerly,
			status{Bound: bound(ours, "1"), Refused: bound(ownerly, "1")}, []string{"9/41"}},
		"what is bound comes back": {
			"", status{Bound: bound(ours, "1"), Refused: bound(theirs, "1")}, ours, status{Bound: bound(ours, "1")}, nil,
		},
		"an account that is not told": {
			"", status{Bound: bound(ours, "1")}, v1alpha1.ProjectIdentity{ID: 41}, status{Bound: bound(ours, "1")}, nil,
		},
		"an account is learnt": {
			"", status{Bound: bound(v1alpha1.ProjectIdentity{ID: 41}, "1")}, ours, status{Bound: bound(ours, "1")}, nil,
		},
		"a recreated Repository is not bound": {
			"", status{Bound: bound(ours, "0"), Refused: bound(theirs, "0")}, theirs, status{Bound: bound(theirs, "1")}, nil,
		},
		"a confirmation binds": {
			"9/43", status{Bound: bound(ours, "1"), Refused: bound(theirs, "1"), Proven: true}, theirs,
			status{Bound: bound(theirs, "1")}, nil,
		},
		"a confirmation of any account": {
			"0/43", status{Bound: bound(ours, "1")}, theirs, status{Bound: bound(theirs, "1")}, nil,
		},
		"a confirmation is of one repository": {"9/44", status{Bound: bound(ours, "1")}, theirs,
			status{Bound: bound(ours, "1"), Refused: bound(theirs, "1")}, []string{"9/44", "9/43"}},
		"what was confirmed counts, not before": {"9/43", status{Bound: bound(ours, "1")}, ours,
			status{Bound: bound(ours, "1"), Refused: bound(ours, "1")}, []string{"9/43", "7/41"}},
		"a confirmation before the first event": {
			"9/43", status{}, ours, status{Refused: bound(ours, "1")}, []string{"9/43", "7/41"},
		},
		"a confirmation that is none": {"yes", status{Bound: bound(ours, "1")}, ours,
			status{Bound: bound(ours, "1"), Refused: bound(ours, "1")}, []string{`"yes"`, "repository-id=7/41"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := identify(repository("1", c.annotation), c.before, c.seen)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if refused := fault.Is(err, fault.Ignored); refused != (c.says != nil) || err != nil && !refused {
				t.Fatalf("the error is %v", err)
			}
			for _, words := range c.says {
				if !strings.Contains(err.Error(), words) || Refusal(repository("1", c.annotation), got) != fault.Of(err).Message {
					t.Errorf("%q and %q do not say %q", err, Refusal(repository("1", c.annotation), got), words)
				}
			}
			if c.says == nil && Refusal(repository("1", c.annotation), got) != "" {
				t.Errorf("it is served and told %q", Refusal(repository("1", c.annotation), got))
			}
		})
	}
}

// A confirmation is visible at once, and a Repository that is created again needs none.
func TestRefusalEndsAfterConfirmation(t *testing.T) {
	status := v1alpha1.RepositoryClaimStatus{Bound: bound(ours, "1"), Refused: bound(theirs, "1")}
	for annotation, want := range map[string]bool{"": true, "7/41": true, "9/43": false} {
		if got := Refusal(repository("1", annotation), status); (got != "") != want {
			t.Errorf("annotation %q: told %q", annotation, got)
		}
	}
	if got := Refusal(repository("2", ""), status); got != "" {
		t.Errorf("a new Repository is told %q", got)
	}
}
