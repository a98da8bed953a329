// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const system = "plumbline"

// env is an API server with the claim of the Repository team/app, and a cache of claims.
type env struct {
	*testing.T
	client *fake.Clientset
	cache  cache.Indexer
	files  *files
	keeper *Checker
}

// files are what the default branch has.
type files struct {
	proof    string
	err      error
	branches int
}

func (f *files) DefaultBranch(context.Context) (string, error) { f.branches++; return "head", nil }

func (f *files) File(_ context.Context, sha, path string) ([]byte, error) {
	switch {
	case f.err != nil:
		return nil, f.err
	case f.proof == "" || sha != "head" || path != ProofFile:
		return nil, fault.Invalidf("FileNotFound", "%s", path)
	}
	return []byte(f.proof), nil
}

func claim(status v1alpha1.RepositoryClaimStatus) *v1alpha1.RepositoryClaim {
	return &v1alpha1.RepositoryClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: v1alpha1.ClaimName(appURL)}, Status: status,
		Spec: v1alpha1.RepositoryClaimSpec{
			URL: appURL, Repository: v1alpha1.ClaimOwner{Namespace: "team", Name: "app", UID: "1"},
		},
	}
}

// newEnv has the claim and the Repository in the API server, and another claim in the cache.
func newEnv(t *testing.T, cached *v1alpha1.RepositoryClaim, live ...runtime.Object) *env {
	w := &env{T: t, client: fake.NewSimpleClientset(live...), files: &files{},
		cache: cache.NewIndexer(cache.MetaNamespaceKeyFunc,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
	if cached != nil {
		if err := w.cache.Add(cached); err != nil {
			t.Fatal(err)
		}
	}
	w.keeper = &Checker{Cached: listers.NewRepositoryClaimLister(w.cache).RepositoryClaims(system),
		Claims: w.client.PlumblineV1alpha1().RepositoryClaims(system), Repositories: w.client.PipelinesascodeV1alpha1()}
	return w
}

func (w *env) serves(seen v1alpha1.ProjectIdentity, uid types.UID, owners string) error {
	c, _ := config.New(map[string]string{"url-owners": owners})
	return w.keeper.Serves(config.ToContext(w.Context(), c), repository(uid, ""), &v1alpha1.GitEventSpec{
		Repository: v1alpha1.RepositoryReference{Namespace: "team", Name: "app", URL: appURL + ".git"},
		Project:    v1alpha1.Project{ID: seen.ID, OwnerID: seen.OwnerID},
	}, w.files)
}

func (w *env) status() v1alpha1.RepositoryClaimStatus {
	w.Helper()
	got, err := w.client.PlumblineV1alpha1().RepositoryClaims(system).Get(w.Context(), v1alpha1.ClaimName(appURL),
		metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return got.Status
}

func (w *env) calls() []string {
	var all []string
	for _, action := range w.client.Actions() {
		all = append(all, action.GetVerb()+" "+action.GetResource().Resource)
	}
	w.client.ClearActions()
	return all
}

func TestServesMatchingEventFromCache(t *testing.T) {
	status := v1alpha1.RepositoryClaimStatus{Bound: bound(ours, "1")}
	w := newEnv(t, claim(status), claim(status), repository("1", ""))
	if err := w.serves(ours, "1", ""); err != nil || len(w.calls()) != 0 || w.files.branches != 0 {
		t.Errorf("%v; it read the default branch %d times", err, w.files.branches)
	}
}

func TestServesBindsURLToFirstRepository(t *testing.T) {
	w := newEnv(t, claim(v1alpha1.RepositoryClaimStatus{}), claim(v1alpha1.RepositoryClaimStatus{}), repository("1", ""))
	if err := w.serves(ours, "1", ""); err != nil {
		t.Fatal(err)
	}
	want := []string{"get repositoryclaims", "get repositories", "update repositoryclaims"}
	if diff := cmp.Diff(want, w.calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	// The cache still says that nothing is bound.
	if err := w.serves(theirs, "1", ""); !fault.Is(err, fault.Ignored) ||
		fault.Of(err).Reason != v1alpha1.ReasonAnotherRepository {
		t.Errorf("%v, want it refused", err)
	}
	if diff := cmp.Diff(v1alpha1.RepositoryClaimStatus{Bound: bound(ours, "1"), Refused: bound(theirs, "1")},
		w.status()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.calls()
	if err := w.serves(theirs, "1", ""); !fault.Is(err, fault.Ignored) || cmp.Diff(want[:2], w.calls()) != "" {
		t.Errorf("%v; what is known is written again", err)
	}
}

// If two first events have different ids, the API server refuses the second write.
func TestServesReturnsConflictForRetry(t *testing.T) {
	w := newEnv(t, nil, claim(v1alpha1.RepositoryClaimStatus{}), repository("1", ""))
	w.client.PrependReactor("update", "repositoryclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("modified"))
	})
	if err := w.serves(theirs, "1", ""); !fault.Is(err, fault.Conflict) {
		t.Errorf("%v, want the conflict", err)
	}
}

// The cache alone never denies or binds anything.
func TestServesConfirmsDenialsLive(t *testing.T) {
	status := v1alpha1.RepositoryClaimStatus{Bound: bound(ours, "2")}
	w := newEnv(t, claim(v1alpha1.RepositoryClaimStatus{Bound: bound(theirs, "1")}), claim(status), repository("2", ""))
	if err := w.serves(ours, "1", ""); err != nil {
		t.Errorf("the Repository was made anew and is bound: %v", err)
	}
	if err := w.serves(theirs, "2", ""); !fault.Is(err, fault.Ignored) {
		t.Errorf("the cache is behind and binds: %v", err)
	}
}

// A failed look-up is retried: nothing is served and nothing is written (S12).
func TestServesReturnsErrors(t *testing.T) {
	other := claim(v1alpha1.RepositoryClaimStatus{})
	other.Spec.Repository.Namespace = "other"
	for name, c := range map[string]struct {
		live    []runtime.Object
		failing string
		class   fault.Class
	}{
		"there is no claim":      {[]runtime.Object{repository("1", "")}, "", fault.Transient},
		"there is no Repository": {[]runtime.Object{claim(v1alpha1.RepositoryClaimStatus{})}, "", fault.Transient},
		"the claim is another's": {[]runtime.Object{other, repository("1", "")}, "", fault.Ignored},
		"the claim cannot be read": {
			[]runtime.Object{claim(v1alpha1.RepositoryClaimStatus{}), repository("1", "")}, "repositoryclaims", fault.Transient,
		},
		"the Repository cannot be": {
			[]runtime.Object{claim(v1alpha1.RepositoryClaimStatus{}), repository("1", "")}, "repositories", fault.Transient,
		},
	} {
		w := newEnv(t, nil, c.live...)
		w.client.PrependReactor("get", c.failing, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewInternalError(errors.New("etcd"))
		})
		if err := w.serves(ours, "1", ""); !fault.Is(err, c.class) {
			t.Errorf("%s: %v, want %v", name, err, c.class)
		}
	}
}

// A claim that was removed because the administrator has listed the URL for others never returns:
// its events end.
func TestServesIgnoresEventAfterLostClaim(t *testing.T) {
	for listed, want := range map[string]fault.Class{
		`{"other": ["` + appURL + `"]}`:             fault.Ignored,
		`{"team": ["` + appURL + `"]}`:              fault.Transient,
		`{"other": ["https://git.example/x/y"]}`:    fault.Transient,
		`{"other": ["` + appURL + `"], "team": []}`: fault.Ignored,
	} {
		w := newEnv(t, nil, repository("1", ""))
		err := w.serves(ours, "1", listed)
		if reason := map[fault.Class]string{fault.Ignored: v1alpha1.ReasonNotProven,
			fault.Transient: fault.ReasonNotClaimedYet}[want]; !fault.Is(err, want) || fault.Of(err).Reason != reason {
			t.Errorf("%s: %v, want %v %s", listed, err, want, reason)
		}
	}
}
