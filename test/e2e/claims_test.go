// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A Repository is deleted, and others name its URL: for a day it is kept for it, nobody is served,
// and they are told so. Made again it has its URL as before. After the day exactly one of the
// others has it, and gets its events.
func TestADeletedRepositoryKeepsItsURLForADay(t *testing.T) {
	t.Parallel()
	// Three controllers share the Repositories among them.
	w := newWorld(t, setup{receivers: 1, controllers: 3, config: [][3]string{{"plumbline-config-leader-election", "buckets", "3"}}})
	w.claimed()
	heirs := []string{w.further("heir"), w.further("heir")}
	w.must(w.names(heirs[0], "app", w.repo.HTMLURL))
	w.loses(heirs[0], "app", w.ci+"/app", "belongs to Repository", "Delete one of the two")

	repositories := w.Plumbline.PipelinesascodeV1alpha1().Repositories(w.ci)
	w.must(repositories.Delete(w.ctx, "app", metav1.DeleteOptions{}))
	w.must(w.names(heirs[1], "app", w.repo.HTMLURL+".git"))
	for _, heir := range heirs {
		w.loses(heir, "app", w.ci+"/app", "is kept for it for a day", "ask an administrator to delete RepositoryClaim "+w.Namespace+"/")
	}
	w.releasedAgo(23 * time.Hour)
	_, unserved := w.push(map[string]string{".tekton/push.yaml": pipeline("kept", "push")})
	w.deliver(unserved, http.StatusOK)
	if events := w.events(); len(events) != 0 {
		t.Errorf("an event of nobody's URL was recorded: %+v", events)
	}

	w.createRepository(w.ci, "app")
	w.owns(w.ci, "app")
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("kept", "push")})
	w.deliver(delivery, http.StatusAccepted)
	w.checkReaches(sha, checkName("kept"), "success", afterFault)

	w.must(repositories.Delete(w.ctx, "app", metav1.DeleteOptions{})) // it is renamed, and back
	w.must(w.names(w.ci, "renamed", w.repo.HTMLURL))
	w.owns(w.ci, "renamed")
	w.must(repositories.Delete(w.ctx, "renamed", metav1.DeleteOptions{}))
	w.createRepository(w.ci, "app")
	w.owns(w.ci, "app")

	w.must(repositories.Delete(w.ctx, "app", metav1.DeleteOptions{}))
	for _, heir := range heirs {
		w.loses(heir, "app", w.ci+"/app", "is kept for it for a day")
	}
	w.releasedAgo(24*time.Hour - aMoment)
	heir := w.oneOwns("app", w.repo.HTMLURL, heirs...)
	sha, delivery = w.push(map[string]string{".tekton/push.yaml": pipeline("inherited", "push")})
	w.deliver(delivery, http.StatusAccepted)
	w.checkReaches(sha, checkName("inherited"), "success", afterFault)
	for _, run := range w.created(sha).Status.Runs {
		if run.Namespace != heir {
			t.Errorf("the run was made in %s, want %s", run.Namespace, heir)
		}
	}
	w.settled(afterFault)
	w.invariants()
}

// names makes a Repository that names a URL.
func (w *world) names(namespace, name, url string) error {
	_, err := w.Plumbline.PipelinesascodeV1alpha1().Repositories(namespace).Create(w.ctx, &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: pacv1alpha1.RepositorySpec{URL: url},
	}, metav1.CreateOptions{})
	return err
}

// hasURL reads a Repository's condition URL.
func (w *world) hasURL(namespace, name string) (owned bool, message string, err error) {
	repository, err := w.Plumbline.PipelinesascodeV1alpha1().Repositories(namespace).Get(w.ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, "", err
	}
	c := repository.Status.GetCondition(pacv1alpha1.RepositoryURL)
	if c == nil {
		return false, "", fmt.Errorf("Repository %s/%s has no condition URL", namespace, name)
	}
	if ready := repository.Status.GetCondition(pacv1alpha1.RepositoryReady); ready == nil || c.IsFalse() && !ready.IsFalse() {
		return false, "", fmt.Errorf("Repository %s/%s has URL=%s and Ready=%v", namespace, name, c.Status, ready)
	}
	return c.IsTrue(), c.Message, nil
}

func (w *world) owns(namespace, name string) {
	w.t.Helper()
	w.eventually(afterFault, namespace+"/"+name+" owns its URL", func() error {
		owned, message, err := w.hasURL(namespace, name)
		if err == nil && !owned {
			err = fmt.Errorf("it does not: %s", message)
		}
		return err
	})
}

// loses waits until a Repository is told whose its URL is, and what to do.
func (w *world) loses(namespace, name string, words ...string) {
	w.t.Helper()
	w.eventually(afterFault, namespace+"/"+name+" is told", func() error {
		owned, message, err := w.hasURL(namespace, name)
		if err == nil && (owned || !containsAll(message, words...)) {
			err = fmt.Errorf("owned %t, told %q, want %q", owned, message, words)
		}
		return err
	})
}

// oneOwns waits until one of the Repositories of a name owns the URL by its condition and by its
// claim, and the others are told that it does.
func (w *world) oneOwns(name, url string, namespaces ...string) (owner string) {
	w.t.Helper()
	w.eventually(afterFault, "one of "+strings.Join(namespaces, ", ")+" owns "+url, func() error {
		claim := w.claim(url)
		if claim == nil || claim.Status.ReleasedAt != nil {
			return fmt.Errorf("its claim is %+v", claim)
		}
		owner = claim.Spec.Repository.Namespace
		for _, namespace := range namespaces {
			owned, message, err := w.hasURL(namespace, name)
			if err != nil {
				return err
			}
			if owned != (namespace == owner) || !owned && !containsAll(message, owner+"/"+name, "Delete one of the two") {
				return fmt.Errorf("the claim is of %s; %s: owned %t, told %q", owner, namespace, owned, message)
			}
		}
		return nil
	})
	return owner
}

// claim is the one of a URL, nil when there is none.
func (w *world) claim(url string) *v1alpha1.RepositoryClaim {
	w.t.Helper()
	canonical, err := v1alpha1.CanonicalURL(url)
	w.must(err)
	found, err := w.Plumbline.PlumblineV1alpha1().RepositoryClaims(w.Namespace).Get(w.ctx, v1alpha1.ClaimName(canonical), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return found
}

// releasedAgo makes time pass since the claim of the world's URL was given up.
func (w *world) releasedAgo(d time.Duration) {
	w.t.Helper()
	at := time.Now().Add(-d).UTC().Format(time.RFC3339)
	_, err := w.Plumbline.PlumblineV1alpha1().RepositoryClaims(w.Namespace).Patch(w.ctx, w.claim(w.repo.HTMLURL).Name, types.MergePatchType,
		[]byte(`{"status":{"releasedAt":"`+at+`"}}`), metav1.PatchOptions{}, "status")
	w.must(err)
}
