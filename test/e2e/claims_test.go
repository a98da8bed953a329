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

// When a Repository is deleted, its URL stays reserved for a day. Other Repositories with that URL
// are not served, and their conditions say so. If it is created again within the day, it has its
// URL as before. After the day exactly one of the others gets the URL and its events.
func TestDeletedRepositoryReservesURLForADay(t *testing.T) {
	t.Parallel()
	// Three controllers share the Repositories.
	env := newClaimedEnvironment(t,
		setup{receivers: 1, controllers: 3, config: [][3]string{{"plumbline-config-leader-election", "buckets", "3"}}})
	heirs := []string{env.addNamespace("heir"), env.addNamespace("heir")}
	env.createRepositoryWithURL(heirs[0], "app", env.repo.HTMLURL)
	env.awaitURLConflict(heirs[0], "app", env.ci+"/app", "belongs to Repository", "Delete one of the two")

	repositories := env.Plumbline.PipelinesascodeV1alpha1().Repositories(env.ci)
	env.must(repositories.Delete(env.ctx, "app", metav1.DeleteOptions{}))
	env.createRepositoryWithURL(heirs[1], "app", env.repo.HTMLURL+".git")
	for _, heir := range heirs {
		env.awaitURLConflict(heir, "app", env.ci+"/app", "is kept for it for a day",
			"ask an administrator to delete RepositoryClaim "+env.Namespace+"/")
	}
	env.ageReleasedClaim(23 * time.Hour)
	_, unserved := env.push(map[string]string{".tekton/push.yaml": pipeline("kept", "push")})
	env.deliver(unserved, http.StatusOK)
	if events := env.events(); len(events) != 0 {
		t.Errorf("an event of an unclaimed URL was recorded: %+v", events)
	}

	env.createRepository(env.ci, "app")
	env.awaitURL(env.ci, "app")
	sha, delivery := env.push(map[string]string{".tekton/push.yaml": pipeline("kept", "push")})
	env.deliver(delivery, http.StatusAccepted)
	env.awaitCheck(sha, checkName("kept"), "success", afterFault)

	// it gets another name, and then the first one again
	env.must(repositories.Delete(env.ctx, "app", metav1.DeleteOptions{}))
	env.createRepositoryWithURL(env.ci, "renamed", env.repo.HTMLURL)
	env.awaitURL(env.ci, "renamed")
	env.must(repositories.Delete(env.ctx, "renamed", metav1.DeleteOptions{}))
	env.createRepository(env.ci, "app")
	env.awaitURL(env.ci, "app")

	env.must(repositories.Delete(env.ctx, "app", metav1.DeleteOptions{}))
	for _, heir := range heirs {
		env.awaitURLConflict(heir, "app", env.ci+"/app", "is kept for it for a day")
	}
	env.ageReleasedClaim(24*time.Hour - aMoment)
	heir := env.awaitOneOwner("app", env.repo.HTMLURL, heirs...)
	sha, delivery = env.push(map[string]string{".tekton/push.yaml": pipeline("inherited", "push")})
	env.deliver(delivery, http.StatusAccepted)
	env.awaitCheck(sha, checkName("inherited"), "success", afterFault)
	for _, run := range env.awaitRunsCreated(sha).Status.Runs {
		if run.Namespace != heir {
			t.Errorf("the run was made in %s, want %s", run.Namespace, heir)
		}
	}
	env.awaitAllSettled(afterFault)
	env.requireInvariants()
}

// urlCondition reads the condition URL of a Repository.
func (env *environment) urlCondition(namespace, name string) (owned bool, message string, err error) {
	repository, err := env.Plumbline.PipelinesascodeV1alpha1().Repositories(namespace).Get(env.ctx, name,
		metav1.GetOptions{})
	if err != nil {
		return false, "", err
	}
	c := repository.Status.GetCondition(pacv1alpha1.RepositoryURL)
	if c == nil {
		return false, "", fmt.Errorf("Repository %s/%s has no condition URL", namespace, name)
	}
	if ready := repository.Status.GetCondition(pacv1alpha1.RepositoryReady); ready == nil ||
		c.IsFalse() && !ready.IsFalse() {
		return false, "", fmt.Errorf("Repository %s/%s has URL=%s and Ready=%v", namespace, name, c.Status, ready)
	}
	return c.IsTrue(), c.Message, nil
}

func (env *environment) awaitURL(namespace, name string) {
	env.t.Helper()
	env.eventually(afterFault, namespace+"/"+name+" owns its URL", func() error {
		owned, message, err := env.urlCondition(namespace, name)
		if err == nil && !owned {
			err = fmt.Errorf("it does not: %s", message)
		}
		return err
	})
}

// awaitURLConflict waits until a Repository's condition says who owns the URL, and what to do.
func (env *environment) awaitURLConflict(namespace, name string, words ...string) {
	env.t.Helper()
	env.eventually(afterFault, namespace+"/"+name+" has the conflict in its condition", func() error {
		owned, message, err := env.urlCondition(namespace, name)
		if err == nil && (owned || !containsAll(message, words...)) {
			err = fmt.Errorf("owned %t, the condition says %q, want %q", owned, message, words)
		}
		return err
	})
}

// awaitOneOwner waits until one of the Repositories with a name owns the URL by its condition and
// by its claim, and the conditions of the others name it.
func (env *environment) awaitOneOwner(name, url string, namespaces ...string) (owner string) {
	env.t.Helper()
	env.eventually(afterFault, "one of "+strings.Join(namespaces, ", ")+" owns "+url, func() error {
		claim := env.claim(url)
		if claim == nil || claim.Status.ReleasedAt != nil {
			return fmt.Errorf("its claim is %+v", claim)
		}
		owner = claim.Spec.Repository.Namespace
		for _, namespace := range namespaces {
			owned, message, err := env.urlCondition(namespace, name)
			if err != nil {
				return err
			}
			if owned != (namespace == owner) || !owned && !containsAll(message, owner+"/"+name, "Delete one of the two") {
				return fmt.Errorf("the claim is of %s; %s: owned %t, the condition says %q", owner, namespace, owned, message)
			}
		}
		return nil
	})
	return owner
}

// claim returns the claim of a URL, nil when there is none.
func (env *environment) claim(url string) *v1alpha1.RepositoryClaim {
	env.t.Helper()
	canonical, err := v1alpha1.CanonicalURL(url)
	env.must(err)
	found, err := env.Plumbline.PlumblineV1alpha1().RepositoryClaims(env.Namespace).Get(env.ctx,
		v1alpha1.ClaimName(canonical), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	env.must(err)
	return found
}

// ageReleasedClaim moves the release of the claim on the environment's URL into the past.
func (env *environment) ageReleasedClaim(d time.Duration) {
	env.t.Helper()
	at := time.Now().Add(-d).UTC().Format(time.RFC3339)
	_, err := env.Plumbline.PlumblineV1alpha1().RepositoryClaims(env.Namespace).Patch(env.ctx,
		env.claim(env.repo.HTMLURL).Name, types.MergePatchType,
		[]byte(`{"status":{"releasedAt":"`+at+`"}}`), metav1.PatchOptions{}, "status")
	env.must(err)
}
